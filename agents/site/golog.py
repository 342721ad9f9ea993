"""The natural logarithm as Go's math.Log computes it, bit for bit.

The weight of a topology in PodTopologySpread is a logarithm whose last bit decides roundings; libm (and numpy) differ
from Go by one unit in the last place for about one size in a hundred.
"""

from functools import lru_cache
from math import frexp

_HALF_ROOT_2 = 1.4142135623730951 / 2
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_L1, _L2, _L3, _L4 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
)
_L5, _L6, _L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01


@lru_cache(maxsize=1 << 12)
def log(x: float) -> float:
    """ln(x) for a finite x > 0: the algorithm of FreeBSD's e_log.c, in the order of operations that Go uses."""
    fraction, exponent = frexp(x)
    if fraction < _HALF_ROOT_2:
        fraction *= 2
        exponent -= 1
    f, k = fraction - 1, float(exponent)
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    t1 = s2 * (_L1 + s4 * (_L3 + s4 * (_L5 + s4 * _L7)))
    t2 = s4 * (_L2 + s4 * (_L4 + s4 * _L6))
    r = t1 + t2
    half_square = 0.5 * f * f
    return k * _LN2_HIGH - ((half_square - (s * (half_square + r) + k * _LN2_LOW)) - f)
