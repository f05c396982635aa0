#!/usr/bin/env bash
# The real Ironic on this machine, for tests: `ironic.sh up|down|status|restart|forget|python|nginx`.
#
# All files are under $CACHE/ironic: one virtual environment per lock file, one directory per instance. An instance
# listens on one address, with TLS and a login created at its start; endpoint.json has what a client requires.
# `down` ends the processes by their recorded ids, removes database and secrets, and keeps the logs.
#
#   INSTANCE=name   one of several concurrent instances (default: default)
#   PORT=number     of the API; the file server uses the next one (default: the first free pair from 26385 on)
#   ENTRY=fast|stock   the fast entry point shortens the password hash of each Redfish call (see ironic_fast.py)
#   DB=sqlite|mariadb  MariaDB runs from a separate directory, with a socket only
#   EXTRA_CONF=file    a second configuration file, which overrides the first
#   IP=address         listen address; use another one only in an isolated network (default: 127.0.0.1)
#   NEW=1              `up` fails for a running instance
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${CACHE:-$HOME/.cache/metal3-rs}
INSTANCE=${INSTANCE:-default}
# Explicit settings: a running instance must have the same.
requested=${ENTRY:+entry=$ENTRY }${DB:+database=$DB}
ENTRY=${ENTRY:-fast}
DB=${DB:-sqlite}
EXTRA_CONF=${EXTRA_CONF:-}
IP=${IP:-127.0.0.1}
readonly FIRST_PORT=26385
root=$CACHE/ironic
home=$root/run/$INSTANCE
venv=$root/venv-$(sha256sum "$here/requirements.txt" | cut -c1-16)
# The caches of Python's packages are in the same directory.
export PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=$root/remembered
# Debian installs file system tools in directories that are not in the PATH of ordinary users; Ironic calls them by name.
export PATH=$PATH:/usr/sbin:/sbin

say() { printf '%s\n' "$*"; }
die() { printf 'ironic: %s\n' "$*" >&2; exit 1; }

# The name is a directory name, and the directory is emptied.
case $INSTANCE in [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) die "INSTANCE=$INSTANCE: use letters, digits, and . _ - after the first character" ;; esac

# Package lists may be missing or outdated: a failed command is repeated with updated lists.
with_lists() { "$@" || { apt-get update && "$@"; }; }

add() {
  local install=(apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@")
  [ "$(id -u)" -eq 0 ] || die "missing packages; as root: apt-get update && ${install[*]}"
  say "installing $*"
  DEBIAN_FRONTEND=noninteractive with_lists "${install[@]}" >"$root/apt.log" 2>&1 || die "failed: ${install[*]}; see $root/apt.log"
}

# COMMAND PACKAGE pairs: programs that the conductor calls in addition to Python.
packages() {
  local missing=() command package
  while read -r command package; do
    command -v "$command" >/dev/null || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] || add "${missing[@]}"
}

# A Python that can create virtual environments: Debian's requires another package for that.
find_python() {
  local one
  for one in $(type -aP python3.11) /usr/bin/python3.11; do
    if "$one" -c 'import ensurepip, venv' 2>/dev/null; then say "$one"; return; fi
  done
  return 1
}

install() {
  mkdir -p "$root/run"
  exec 9>"$root/install.lock"
  flock 9
  packages <<-END
	curl curl
	openssl openssl
	mkisofs genisoimage
	qemu-img qemu-utils
	mcopy mtools
	mkfs.vfat dosfstools
	END
  if [ "$DB" = mariadb ]; then
    # The core packages install no system service and no user.
    packages <<-END
	mariadbd mariadb-server-core
	my_print_defaults mariadb-client-core
	END
  fi
  # The marker is written last, so an interrupted installation starts again.
  if [ ! -e "$venv/complete" ]; then
    say "installing Ironic from $here/requirements.txt"
    local python
    python=$(find_python) || { add python3.11-venv; python=$(find_python); } ||
      die 'python3.11 is required: the lock file has wheels for it'
    rm -rf "$venv"
    "$python" -m venv "$venv" >"$root/pip.log" 2>&1 || die "$python cannot create a virtual environment; see $root/pip.log"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-compile --require-hashes --only-binary=:all: \
      -r "$here/requirements.txt" >>"$root/pip.log" 2>&1 || die "pip failed; see $root/pip.log"
    "$venv/bin/python" -m compileall -q "$venv/lib" || true
    touch "$venv/complete"
  fi
  exec 9>&-
}

# Process ids are reused: a process belongs to the instance when its command line contains the directory.
alive() {
  local pid
  pid=$(cat "$home/pid/$1" 2>/dev/null) && tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$home/"
}

spawn() {
  local name=$1; shift
  # The child writes its own id: where setsid forks, $! is another process. It does not inherit the lock.
  TMPDIR=$home/tmp setsid -f bash -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; exec "$@"' "$home/pid/$name" "$@" \
    >>"$home/log/$name.log" 2>&1 </dev/null 7>&- 8>&-
  local tries
  for tries in $(seq 500); do [ -s "$home/pid/$name" ] && return; sleep 0.02; done
  die "$name does not start; see $home/log/$name.log"
}

# Whether all processes of a group have ended, after this many tenths of a second.
end_of() {
  local tries
  for tries in $(seq "$2"); do kill -0 -- "-$1" 2>/dev/null || return 0; sleep 0.1; done
  return 1
}

stop() {
  local name=$1 pid
  if alive "$name"; then
    pid=$(cat "$home/pid/$name")
    kill "$pid" 2>/dev/null || true
    end_of "$pid" 100 || kill -9 -- "-$pid" 2>/dev/null || true
    end_of "$pid" 50 || say "ironic: process group $pid ($name) does not end" >&2
  fi
  rm -f "$home/pid/$name"
}

port_is_busy() { (exec 3<>"/dev/tcp/$IP/$1") 2>/dev/null; }

choose_port() {
  local port=${PORT:-$FIRST_PORT}
  while port_is_busy "$port" || port_is_busy $((port + 1)) || grep -qsF "$IP:$port\"" "$root"/run/*/endpoint.json; do
    [ -z "${PORT:-}" ] || die "port $PORT or $((PORT + 1)) is in use; choose another PORT"
    port=$((port + 10))
    [ "$port" -lt 27385 ] || die "no free port from $FIRST_PORT on; see: make ironic-down INSTANCE=..."
  done
  PORT=$port
}

secrets() {
  local s=$home/secrets key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
  mkdir -m 700 "$s"
  openssl rand -hex 24 >"$s/password"
  "$venv/bin/python" -c 'import bcrypt, sys
print("admin:" + bcrypt.hashpw(sys.stdin.read().strip().encode(), bcrypt.gensalt(4)).decode())' <"$s/password" >"$s/htpasswd"
  # shellcheck disable=SC2086
  openssl req -x509 $key -days 30 -subj '/CN=metal3 test CA' -addext keyUsage=critical,keyCertSign \
    -keyout "$s/ca.key" -out "$s/ca.crt" 2>>"$home/log/openssl.log"
  # shellcheck disable=SC2086
  openssl req $key -subj /CN=ironic -addext "subjectAltName=IP:$IP,DNS:localhost" \
    -keyout "$s/server.key" -out "$s/server.csr" 2>>"$home/log/openssl.log"
  openssl x509 -req -days 30 -in "$s/server.csr" -copy_extensions copy -CA "$s/ca.crt" -CAkey "$s/ca.key" -CAcreateserial \
    -out "$s/server.crt" 2>>"$home/log/openssl.log"
  # The key is not used again.
  rm "$s/ca.key" "$s/server.csr"
}

start_database() {
  if [ "$DB" = sqlite ]; then
    database=sqlite:///$home/ironic.sqlite
    return
  fi
  [ "$DB" = mariadb ] || die "DB=$DB: choose sqlite or mariadb"
  local socket=$home/db.sock me; me=$(id -un)
  mariadb-install-db --no-defaults --user="$me" --datadir="$home/mariadb" --auth-root-authentication-method=normal \
    --skip-test-db >>"$home/log/mariadb-install.log" 2>&1 || die "mariadb-install-db failed; see $home/log/mariadb-install.log"
  spawn mariadb "$(command -v mariadbd)" --no-defaults --user="$me" --datadir="$home/mariadb" \
    --socket="$socket" --skip-networking --innodb-buffer-pool-size=64M
  local tries
  for tries in $(seq 150); do [ -S "$socket" ] && break; alive mariadb || break; sleep 0.1; done
  "$venv/bin/python" -c 'import pymysql, sys
pymysql.connect(unix_socket=sys.argv[1], user="root").cursor().execute("CREATE DATABASE ironic CHARACTER SET utf8mb4")' "$socket" \
    2>>"$home/log/mariadb.log" || die "MariaDB does not answer; see $home/log/mariadb.log"
  database="mysql+pymysql://root@localhost/ironic?unix_socket=$socket&charset=utf8mb4"
}

render() {
  local text; text=$(<"$here/ironic.conf.in")
  text=${text//@HOME@/"$home"}; text=${text//@IP@/"$IP"}; text=${text//@PORT@/"$PORT"}
  text=${text//@DATABASE@/"$database"}; text=${text//@FILES@/"http://$IP:$((PORT + 1))"}
  printf '%s\n' "${text//@URL@/"https://$IP:$PORT"}" >"$home/ironic.conf"
}

# The password is passed through standard input, so that the process list does not show it.
ask() {
  curl --silent --output /dev/null --write-out '%{http_code}' --max-time 10 --cacert "$home/secrets/ca.crt" --config - \
    "https://$IP:$PORT$1" <<<"user = \"admin:$(<"$home/secrets/password")\"" || true
}

wait_until_healthy() {
  local end=$((SECONDS + 300))
  while alive ironic && [ "$SECONDS" -lt "$end" ]; do
    # Drivers are listed only after the conductor has registered.
    [ "$(ask /v1/drivers/redfish)" = 200 ] && return
    sleep 0.1
  done
  tail -n 20 "$home/log/ironic.log" >&2
  die "https://$IP:$PORT is not healthy; see $home/log/ironic.log"
}

write_endpoint() {
  (umask 077; cat >"$home/endpoint.json.new") <<-END
	{
	  "url": "https://$IP:$PORT",
	  "ca": "$home/secrets/ca.crt",
	  "username": "admin",
	  "password": "$(<"$home/secrets/password")",
	  "files_url": "http://$IP:$((PORT + 1))",
	  "files_root": "$home/http",
	  "python": "$venv/bin/python",
	  "pid": $(<"$home/pid/ironic"),
	  "entry": "$ENTRY",
	  "database": "$DB",
	  "log": "$home/log/ironic.log"
	}
	END
  mv "$home/endpoint.json.new" "$home/endpoint.json"
}

# A field of endpoint.json.
written() { sed -n "s/.*\"$1\": \"\(.*\)\",*/\1/p" "$home/endpoint.json"; }

describe() {
  say "  url          $(written url)"
  say "  CA           $home/secrets/ca.crt"
  say "  login, files $home/endpoint.json"
  say "  log          $home/log/ironic.log"
}

# Removes the files of ended processes; logs are kept.
sweep() { find "$home" -mindepth 1 -maxdepth 1 ! -name log ! -name lock -exec rm -rf {} +; }

# The command line of the ENTRY, and its configuration files.
choose_command() {
  case $ENTRY in fast) command=("$venv/bin/python" "$here/ironic_fast.py") ;; stock) command=("$venv/bin/ironic") ;;
    *) die "ENTRY=$ENTRY: choose fast or stock" ;; esac
  files=(--config-file "$home/ironic.conf")
  [ ! -e "$home/extra.conf" ] || files+=(--config-file "$home/extra.conf")
}

# create_schema, not upgrade: SQLite cannot run the migrations.
make_schema() {
  "$venv/bin/ironic-dbsync" "${files[@]}" create_schema >>"$home/log/dbsync.log" 2>&1 || die "no schema; see $home/log/dbsync.log"
}

# A running instance must have the requested entry point, database and configuration.
check_settings() {
  local setting remedy="end it with: make ironic-down INSTANCE=$INSTANCE"
  for setting in $requested; do
    [ "$(written "${setting%%=*}")" = "${setting#*=}" ] ||
      die "instance $INSTANCE is already running with another ${setting%%=*} than ${setting#*=}; $remedy"
  done
  [ -z "$EXTRA_CONF" ] || cmp -s "$EXTRA_CONF" "$home/extra.conf" ||
    die "instance $INSTANCE is already running without $EXTRA_CONF; $remedy"
}

up() {
  local begun=$SECONDS
  install
  mkdir -p "$home"
  exec 8>"$home/lock"
  flock 8
  if alive ironic && [ -e "$home/endpoint.json" ]; then
    [ -z "${NEW:-}" ] || die "instance $INSTANCE is already running; stop it with: make ironic-down INSTANCE=$INSTANCE"
    check_settings
    say "instance $INSTANCE already runs"
    describe
    return
  fi
  stop_all; sweep
  rm -rf "$home/log"
  # http/redfish: Ironic creates it with the first image, and fails when two machines do so simultaneously.
  mkdir -p "$home"/{pid,log,tmp,state,lock.d,images,master_images,master_iso,tftp,agent_certs,http/ramdisk,http/redfish}
  chmod 700 "$home"
  local installed=$((SECONDS - begun))
  trap stop_all EXIT
  # Dummy files: simulated machines read the ISO that Ironic builds from them, and nothing executes them.
  local part; for part in kernel initramfs esp.img; do head -c 4096 /dev/zero >"$home/http/ramdisk/$part"; done
  # The lock is per network namespace, like the ports.
  exec 7</proc/self/ns/net; flock 7
  choose_port; secrets; start_database; render
  [ -z "$EXTRA_CONF" ] || cp "$EXTRA_CONF" "$home/extra.conf"
  choose_command
  spawn files "$venv/bin/python" "$here/file_server.py" "$IP" $((PORT + 1)) "$home/http"
  make_schema
  spawn ironic "${command[@]}" "${files[@]}"
  wait_until_healthy
  exec 7>&-
  [ "$(curl --silent --output /dev/null --write-out '%{http_code}' "http://$IP:$((PORT + 1))/ramdisk/kernel")" = 200 ] ||
    die "the file server does not answer; see $home/log/files.log"
  write_endpoint
  trap - EXIT
  say "Ironic $("$venv/bin/python" -c 'from importlib.metadata import version as v
print(v("ironic"), "with sushy", v("sushy"))'), entry point $ENTRY, database $DB, instance $INSTANCE"
  describe
  say "  times        installed in $installed s, started in $((SECONDS - begun - installed)) s"
}

stop_all() { local name; for name in ironic files mariadb; do stop "$name"; done; }

down() {
  [ -d "$home" ] || { say "instance $INSTANCE never ran"; return; }
  exec 8>"$home/lock"
  flock 8
  stop_all
  sweep
  say "instance $INSTANCE is down; its logs are in $home/log"
}

# Kills Ironic like a power loss and starts it again with the same settings; with `forget` its database is empty.
# All requirements of the restart are checked before the kill.
restart() {
  [ -d "$home" ] || die "instance $INSTANCE does not exist; start it with: make ironic"
  exec 8>"$home/lock"
  flock 8
  local name url file
  for name in ironic files; do
    alive "$name" || die "instance $INSTANCE is not running ($name); start it with: make ironic"
  done
  # With the settings of its start, from any checkout.
  url=$(written url); ENTRY=$(written entry); DB=$(written database); venv=$(written python); venv=${venv%/bin/python}
  [[ $url =~ ^https://(.+):([0-9]+)$ ]] || die "$home/endpoint.json has no url with a port"
  IP=${BASH_REMATCH[1]}; PORT=${BASH_REMATCH[2]}
  case $DB in
    sqlite) ;;
    mariadb)
      [ "${1:-}" != forget ] || die "forget requires DB=sqlite"
      alive mariadb || die "the database of instance $INSTANCE is not running; see $home/log/mariadb.log"
      ;;
    *) die "$home/endpoint.json has no database" ;;
  esac
  choose_command
  for file in "${command[0]}" "$venv/bin/ironic-dbsync" "$home/ironic.conf" "$home/secrets/ca.crt" "$home/secrets/password"; do
    [ -r "$file" ] || die "instance $INSTANCE cannot restart without $file"
  done
  local pid; pid=$(<"$home/pid/ironic")
  kill -9 -- "-$pid"
  # Without a reaper, zombies stay in the group.
  end_of "$pid" 50 || true
  rm -f "$home/pid/ironic"
  if [ "${1:-}" = forget ]; then
    rm -f "$home"/ironic.sqlite*
    make_schema
  fi
  spawn ironic "${command[@]}" "${files[@]}"
  wait_until_healthy
  write_endpoint
}

forget() { restart forget; }

# In MiB, of all processes of a group. The name in stat may contain blanks, so fields are counted after it.
group_rss() {
  local stat kib=0 more
  for stat in /proc/[0-9]*/stat; do
    [ "$(sed 's/.*) //' "$stat" 2>/dev/null | cut -d' ' -f3)" = "$1" ] || continue
    more=$(awk '/^VmRSS/ {print $2}' "${stat%stat}status" 2>/dev/null) && kib=$((kib + ${more:-0}))
  done
  echo $((kib / 1024))
}

status() {
  alive ironic || die "instance $INSTANCE is not running; start it with: make ironic"
  describe
  local name pid rss
  for name in ironic files mariadb; do
    alive "$name" || continue
    pid=$(<"$home/pid/$name")
    rss=$(group_rss "$pid")
    say "  $name: process group $pid, $rss MiB resident"
  done
}

# For users of its Python packages without a running Ironic.
python() { install >&2; say "$venv/bin/python"; }

# For users of a proxy, without a system service.
nginx() {
  local program; program=$(type -P nginx || echo "$root/nginx/usr/sbin/nginx")
  if [ ! -x "$program" ]; then
    mkdir -p "$root"
    exec 9>"$root/install.lock"
    flock 9
    rm -rf "$root/nginx" "$root/nginx.new"
    mkdir "$root/nginx.new"
    # Renamed last, so an interrupted installation starts again.
    (cd "$root/nginx.new" && with_lists apt-get download nginx && dpkg -x nginx_*.deb .) >"$root/apt.log" 2>&1 ||
      die "no nginx; see $root/apt.log"
    mv "$root/nginx.new" "$root/nginx"
    exec 9>&-
  fi
  "$program" -v 2>/dev/null || die "$program does not run; see: ldd $program"
  say "$program"
}

case ${1:-} in up | down | status | restart | forget | python | nginx) "$1" ;;
  *) die 'usage: ironic.sh up|down|status|restart|forget|python|nginx' ;; esac
