"""The commands of the command line, one file each, named as the command is; `__main__` loads the one that is called."""
