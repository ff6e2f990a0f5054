"""The limit of open files is raised for the connections that the configuration allows, and never lowered."""

import subprocess
import sys

import pytest

TRY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from earnest.gateway.process.files import allow
print(allow({wanted}), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "said"),
    [(256, 1000, 600, "600 600"), (256, 500, 600, "500 500"), (700, 1000, 600, "600 700")],
    ids=["raised", "as far as it goes", "enough already"],
)
def test_the_limit_is_raised_as_far_as_it_may(soft: int, hard: int, wanted: int, said: str) -> None:
    code = TRY.format(soft=soft, hard=hard, wanted=wanted)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said
