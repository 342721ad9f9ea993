import struct

import pytest

from underhost.agents.site import golog

# math.Log of Go 1.24 on amd64; libm differs from it by one unit in the last place at 3, 14, 48 and 74
GO = {
    2: "3fe62e42fefa39ef",
    3: "3ff193ea7aad030a",
    7: "3fff2272ae325a57",
    14: "40051cca16d7bba8",
    48: "400ef8383c50bb74",
    74: "4011375cd6fcab1c",
    100: "40126bb1bbb55516",
    5002: "40210901f6dc84b9",
}


@pytest.mark.parametrize(("size", "bits"), [pytest.param(*item, id=f"ln {item[0]}") for item in GO.items()])
def test_the_logarithm_is_gos_to_the_last_bit(size: int, bits: str) -> None:
    assert struct.pack(">d", golog.log(float(size))).hex() == bits
