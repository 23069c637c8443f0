from .counts import PredicateCounts as PredicateCounts
from .counts import StoreCounts as StoreCounts
