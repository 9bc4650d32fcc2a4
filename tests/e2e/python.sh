#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Verbs from Python.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

python=/usr/bin/python3 # the one that Debian's pyverbs is for
"$python" -c 'import pyverbs' 2>/dev/null ||
	die "no pyverbs; run scripts/setup --tests"

cat >"$work/look.py" <<'PYTHON'
import pyverbs.device as d
import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.pd import PD

names = [x.name.decode() for x in d.get_device_list()]
print("list", *names)
with d.Context(name=names[0]) as ctx:
    attr = ctx.query_device()
    port = ctx.query_port(1)
    print("opened", ctx.name, attr.max_qp, port.state, port.link_layer)
    with PD(ctx) as pd, CQ(ctx, 100) as cq:
        with MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE) as mr:
            mr.write("hello", 5)
            print("read back", mr.read(5, 0).decode(), hex(mr.lkey))
print("done")
PYTHON
check "pyverbs lists the device" '^list sfab0$' "$python" "$work/look.py"
check "pyverbs opens it" '^opened sfab0 [1-9]' "$python" "$work/look.py"
check "pyverbs makes PD, CQ and MR" '^done$' "$python" "$work/look.py"

check_nothing_left
summary
