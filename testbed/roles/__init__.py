"""Root, leaf and server as state machines that touch nothing."""
