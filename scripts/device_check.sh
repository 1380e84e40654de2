#!/bin/sh
# Check the gates on one GPU within five minutes: tests, agreement with the CPU, times. Exits 3 where there is no GPU.
#     scripts/device_check.sh [--device cpu --small] [--save rows.jsonl]
cd "$(dirname "$0")/.." || exit 1
exec timeout 300 "${PYTHON:-python}" -m scripts.device_check "$@"
