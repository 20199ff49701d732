"""One function per figure; tables in, a Figure out."""
