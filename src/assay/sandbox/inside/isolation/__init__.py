"""Isolate and limit programs: namespaces, Landlock, seccomp, cgroups."""
