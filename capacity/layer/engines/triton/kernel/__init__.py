"""The kernel, which is compiled by triton; nothing else in here may be imported without it."""

from capacity.layer.engines.triton.kernel.epochs import LENGTHS as LENGTHS
from capacity.layer.engines.triton.kernel.epochs import train as train
