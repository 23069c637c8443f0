"""Models as they are given: pretrained ones, folders on the disk, and their inputs."""
