"""Formats of schemes, one or two in each module; importing this package registers them."""

from capacity.rank.schemes.formats import arrays as arrays
from capacity.rank.schemes.formats import json_factors as json_factors
from capacity.rank.schemes.formats import nested as nested
from capacity.rank.schemes.formats import products as products
from capacity.rank.schemes.formats import sms as sms
