"""The main job on real intensive-care hours: `svmem.demo.run(output)`. Needs the extra `demo`."""

from svmem.demo.job import Settings, run
from svmem.demo.result import DemoResult

__all__ = ["DemoResult", "Settings", "run"]
