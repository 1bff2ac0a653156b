"""Runs a daemon with a listening socket passed as a service manager does.

    pass_socket.py DESCRIPTOR COMMAND...

LISTEN_PID must be the daemon's pid. So this process sets it and then becomes the daemon.
"""
import os
import sys

FIRST = 3  # SD_LISTEN_FDS_START


def main():
    descriptor, command = int(sys.argv[1]), sys.argv[2:]
    if descriptor == FIRST:
        os.set_inheritable(FIRST, True)
    else:
        os.dup2(descriptor, FIRST)
        os.close(descriptor)
    pid = str(os.getpid())
    environment = dict(os.environ, LISTEN_PID=pid, LISTEN_FDS="1")
    if "WATCHDOG_USEC" in environment:
        environment["WATCHDOG_PID"] = pid
    try:
        os.execve(command[0], command, environment)
    except OSError as fault:
        return f"{command[0]}: {fault.strerror}"


sys.exit(main())
