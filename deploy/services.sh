#!/usr/bin/env bash
# Runs a command with PostgreSQL and Redis: deploy/services.sh COMMAND...
# DATABASE_URL and REDIS_URL are used when they are set. What is not set is started for this run only: a server with its
# data in a temporary folder, on a free port of the loopback interface, gone when the command ends.
set -euo pipefail

fail() {
    echo "services: $*" >&2
    exit 1
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# initdb and postgres refuse to run as root; the package's own user does it then.
as_postgres() {
    if [ "$(id -u)" = 0 ]; then
        (cd "$work" && runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

postgres_bin() {
    local newest
    newest=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
    if [ -n "$newest" ]; then
        echo "$newest"
    elif command -v initdb >/dev/null; then
        dirname "$(command -v initdb)"
    fi
}

start_postgres() {
    local bin port
    bin=$(postgres_bin)
    [ -n "$bin" ] || fail "PostgreSQL is not installed (apt-get install postgresql) and DATABASE_URL is not set"
    port=$(free_port)
    mkdir "$work/postgres"
    if [ "$(id -u)" = 0 ]; then
        id postgres >/dev/null 2>&1 || fail "there is no user postgres to run PostgreSQL as"
        chmod 711 "$work"
        chown postgres "$work/postgres"
    fi
    as_postgres "$bin/initdb" -D "$work/postgres/data" -U ratchet --auth=trust --no-sync -E UTF8 >"$work/initdb.log" 2>&1 ||
        fail "initdb failed: $(tail -3 "$work/initdb.log")"
    # Durability is of no use to a throwaway server. No socket in a folder: a path with spaces cannot be passed on, and a
    # long one is refused.
    as_postgres "$bin/pg_ctl" -D "$work/postgres/data" -l "$work/postgres/log" -w -t 60 \
        -o "-p $port -h 127.0.0.1 -c unix_socket_directories= -c fsync=off -c full_page_writes=off -c max_connections=200" start \
        >/dev/null || fail "PostgreSQL did not start: $(tail -3 "$work/postgres/log")"
    pg_ctl="$bin/pg_ctl"
    export DATABASE_URL="postgres://ratchet@127.0.0.1:$port/postgres"
    echo "services: PostgreSQL $("$bin/postgres" --version | grep -o '[0-9.]*' | head -1) on port $port" >&2
}

start_redis() {
    local port
    command -v redis-server >/dev/null || fail "Redis is not installed (apt-get install redis-server) and REDIS_URL is not set"
    port=$(free_port)
    mkdir "$work/redis"
    redis-server --port "$port" --bind 127.0.0.1 --save "" --appendonly no --dir "$work/redis" >"$work/redis/log" 2>&1 &
    redis_pid=$!
    for _ in $(seq 300); do
        (echo PING >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
        kill -0 "$redis_pid" 2>/dev/null || fail "Redis did not start: $(tail -3 "$work/redis/log")"
        sleep 0.1
    done
    (echo PING >"/dev/tcp/127.0.0.1/$port") 2>/dev/null || fail "Redis did not start: $(tail -3 "$work/redis/log")"
    export REDIS_URL="redis://127.0.0.1:$port/0"
    echo "services: Redis on port $port" >&2
}

stop() {
    [ -z "$pg_ctl" ] || as_postgres "$pg_ctl" -D "$work/postgres/data" -m immediate stop >/dev/null || true
    [ -z "$redis_pid" ] || kill "$redis_pid" 2>/dev/null || true
    rm -rf "$work"
}

[ $# -gt 0 ] || fail "usage: deploy/services.sh COMMAND..."
work=$(mktemp -d "${TMPDIR:-/tmp}/ratchet-services.XXXXXX")
pg_ctl=""
redis_pid=""
trap stop EXIT
[ -n "${DATABASE_URL:-}" ] || start_postgres
[ -n "${REDIS_URL:-}" ] || start_redis

# Signals go to the command; this script waits for it and cleans up.
"$@" &
command_pid=$!
trap 'kill -TERM "$command_pid" 2>/dev/null || true' TERM INT
status=0
wait "$command_pid" || status=$?
if kill -0 "$command_pid" 2>/dev/null; then
    wait "$command_pid" || status=$?
fi
exit "$status"
