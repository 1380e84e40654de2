"""Figures and self-contained pages, of the demo and of any memory. Needs the extra `report`."""
