"""Hooks of hosts: what a host asks before and after it uses a tool."""
