"""The log of a run: tables, framed chunks, merging to Parquet."""
