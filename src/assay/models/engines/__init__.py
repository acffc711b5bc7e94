"""Engines that run models; each folder is one."""
