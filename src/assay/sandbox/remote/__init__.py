"""Judge on another machine, by its judge service."""
