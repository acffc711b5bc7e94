"""How programs are isolated and limited: namespaces, Landlock, seccomp, cgroups."""
