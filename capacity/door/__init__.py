"""The door that every public name passes: wrong calls are answered in a sentence of the library.

A call isn't checked before it is made. If it fails by an error of Python, or of a package below,
the door looks for what is wrong with the arguments: their number and names (`capacity.door.calls`),
their types, as the signature annotates them (`capacity.door.annotations`), and values that few
functions take, such as NaN (`capacity.door.values`). What it finds is raised as a `CapacityError`;
if it finds nothing, the error is raised as it is, for it may be one of the library's own. So a
right call costs next to nothing more, and the library's own calls, which don't come through the
door, cost nothing.
"""
