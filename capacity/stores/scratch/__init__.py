"""The temporary database on the disk: its folder, its memory, and terms as its keys."""
