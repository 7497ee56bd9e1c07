# Completion of interlock(1) for bash.

# The names that are held or waited for now. Quick, or not at all.
_interlock_names() {
  timeout 1 interlock "${url[@]}" list --all 2>/dev/null | sed -n '1d; s/  .*//p' | sort -u
}

_interlock() {
  local cur prev words cword
  _init_completion -n : 2>/dev/null || {
    cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
  }
  local commands="run acquire extend release who list watch top serve deadlocks break repair schema config bench simulate torture help"
  local common="--url --config --verbose --log-level --log-format --help"
  local claim="--also --shared --slots --no-wait --wait --ttl --label --identity --actor --priority --quiet --conflict-exit-code"
  local command="" url=() i
  for ((i = 1; i < cword; i++)); do
    case ${words[i]} in
      --url) url+=(--url "${words[++i]}") ;;
      --url=*) url+=("${words[i]}") ;;
      --config) url+=(--config "${words[++i]}") ;;
      --config=*) url+=("${words[i]}") ;;
      --log-level | --log-format) ((++i)) ;;
      --)
        if [[ $command == run ]]; then  # what follows is a command of its own
          if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); fi
          return
        fi
        ;;
      -*) ;;
      *) [[ $command ]] || command=${words[i]} ;;
    esac
  done

  case $prev in
    --ttl | --wait | -w | --at-least | --interval | --duration | --hold) mapfile -t COMPREPLY < <(compgen -W "1s 10s 30s 1m 5m 1h" -- "$cur"); return ;;
    --pid) mapfile -t COMPREPLY < <(compgen -W "$$" -- "$cur"); return ;;
    --config | --svg) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    --url) mapfile -t COMPREPLY < <(compgen -W "file:///" -- "$cur"); return ;;
    --log-level) mapfile -t COMPREPLY < <(compgen -W "debug info warning error" -- "$cur"); return ;;
    --log-format) mapfile -t COMPREPLY < <(compgen -W "logfmt json" -- "$cur"); return ;;
    --sort) mapfile -t COMPREPLY < <(compgen -W "waiting longest oldest changes name" -- "$cur"); return ;;
    --metrics | --threads | --processes | --resources | --seed | --slots | --label | --identity | --actor | --priority | -E | --conflict-exit-code) return ;;
  esac
  local choices=""
  case $command in
    "") choices="$commands --url --config --verbose --help --version" ;;
    run) choices="$claim --at-least --scrub $common --" ;;
    acquire) choices="$claim --pid --json $common" ;;
    extend) choices="--ttl --json $common" ;;
    release) choices="$common" ;;
    who) choices="--json $common" ;;
    list) choices="--all --json $common" ;;
    watch) choices="--interval $common" ;;
    top) choices="--interval --sort --once --json $common" ;;
    serve) choices="--metrics --names $common" ;;
    deadlocks) choices="--json $common" ;;
    break) choices="--yes $common" ;;
    repair) choices="--dry-run $common" ;;
    schema) choices="$common" ;;
    config) choices="--check --json $common" ;;
    bench) choices="--duration --threads --json $common" ;;
    simulate)
      choices="--threads --processes --resources --duration --hold --ttl --seed --svg --no-lock --json $common"
      if [[ $cur != -* && $prev == simulate ]]; then
        mapfile -t COMPREPLY < <(compgen -W "time speed stress escalation scale" -- "$cur")
        return
      fi
      ;;
    torture) choices="--duration --seed --processes --threads --keep --json $common" ;;
    help) choices="$commands" ;;
  esac
  if [[ $cur == -* || -z $command || $command == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$cur")
    return
  fi
  case $command in
    run | acquire | who | list | watch | top | break)
      local name
      COMPREPLY=()
      while IFS= read -r name; do
        [[ $name == "$cur"* ]] && COMPREPLY+=("$(printf %q "$name")")
      done < <(_interlock_names)
      if declare -F __ltrim_colon_completions >/dev/null; then __ltrim_colon_completions "$cur"; fi
      ;;
  esac
}

complete -F _interlock interlock
