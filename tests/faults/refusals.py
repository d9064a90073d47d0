"""What servers say when they refuse a request that they may take later."""

REPLIES = {
    "LOADING": "LOADING Redis is loading the dataset in memory",
    "READONLY": "READONLY You can't write against a read only replica.",
    "MASTERDOWN": "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "NOREPLICAS": "NOREPLICAS Not enough good replicas to write.",
    "BUSY": "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "OOM": "OOM command not allowed when used memory > 'maxmemory'.",
    "MISCONF": "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "MOVED": "MOVED 3999 127.0.0.1:6381",
    "ASK": "ASK 3999 127.0.0.1:6381",
    "TRYAGAIN": "TRYAGAIN Multiple keys request during rehashing of slot",
    "CLUSTERDOWN": "CLUSTERDOWN The cluster is down",
    "NOSCRIPT": "NOSCRIPT No matching script. Please use EVAL.",
    "NOGROUP": "NOGROUP No such key or consumer group 'workers' in XREADGROUP with GROUP option",
    "UNBLOCKED": "UNBLOCKED the stream key no longer exists",
    "EXECABORT": "EXECABORT Transaction discarded because of previous errors.",
    "MAXCLIENTS": "ERR max number of clients reached",
    "KILLED": "ERR Error running script: Script killed by user with SCRIPT KILL",
}
"""By the word that we call it. CONNECT is no reply."""
