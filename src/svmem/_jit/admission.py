"""Taking keys up, in the order in which they come."""

import numpy as np
from numba import njit

from svmem._jit.cold_tier import HOT, thin_view, weigh
from svmem._jit.rows import GRAM
from svmem._jit.stream import (
    ADMITTED,
    COUNT,
    CROWDED,
    FLOOR,
    NODE_OF,
    NOWHERE,
    RECORDS,
    SOLVED,
    TOUCHED,
    TWIN,
    first_equal,
    heat,
)
from svmem._jit.update import set_multiplicity
from svmem._jit.work import CODE, FULL, IN_MARGIN, NODES, OK


@njit(cache=True, nogil=True)
def admit(s, w, valid, upto):
    """Take up the keys before position `upto`. Return OK; FULL or CROWDED where room is lacking; then call again."""
    fresh = upto - s.state[ADMITTED]
    few = w.counts[NODES] + fresh <= HOT or s.state[SOLVED] == 0 or w.counts[CODE] == GRAM
    thin = thin_view(s)
    while s.state[ADMITTED] < upto:
        position = s.state[ADMITTED]
        s.trace[FLOOR, position] = np.inf
        if not valid[position]:
            s.place[TWIN, position] = NOWHERE
        else:
            first = first_equal(s, position)
            if first == position:
                s.place[COUNT, first] = 0
                s.place[NODE_OF, first] = NOWHERE
            node = s.place[NODE_OF, first]
            if node != NOWHERE:
                if w.counts[IN_MARGIN] + 1 >= w.order.shape[1]:
                    return FULL
                code, moved = set_multiplicity(w, node, np.float64(s.place[COUNT, first] + 1))
                if code != OK:
                    return code
                if moved:
                    s.state[TOUCHED] = 1
            elif w.counts[NODES] == w.node.shape[1]:
                return CROWDED
            s.place[COUNT, first] += 1
            s.place[TWIN, position] = first
            s.state[RECORDS] += 1
            if node == NOWHERE and s.place[COUNT, first] == 1:
                if few:
                    heat(s, w, first)
                else:
                    weigh(s, w, thin, first)
        s.state[ADMITTED] = position + 1
    return OK
