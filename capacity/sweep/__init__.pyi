from .execute import do_run as do_run
from .execute import run_sweep as run_sweep
from .plan import Plan as Plan
from .plan import Run as Run
from .plan import make_plan as make_plan
from .plan import read_plan as read_plan
from .store import RUNS_SCHEMA as RUNS_SCHEMA
from .store import load as load
