# Completion of interlock(1) for fish.

set -l commands run acquire extend release who list watch top serve deadlocks break repair schema config bench simulate torture help

# The command among the words so far: the first that is neither an option nor the value of one. Fails if there is none.
function __interlock_command
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --url --config --log-level --log-format
                set -e words[1]
            case '-*'
            case '*'
                echo $words[1]
                return 0
        end
        set -e words[1]
    end
    return 1
end

function __interlock_none
    not __interlock_command >/dev/null
end

# One of these commands is being completed, and no command of its own has begun: run … -- COMMAND.
function __interlock_in
    set -l command (__interlock_command)
    and contains -- $command $argv
    and not __interlock_inner
end

function __interlock_inner
    test "$(__interlock_command)" = run
    and contains -- -- (commandline -opc)
end

# The words after `run … --` are a command line of their own.
function __interlock_complete_inner
    set -l words (commandline -opc)
    set -l separator (contains -i -- -- $words)
    complete -C (string join ' ' -- (string escape -- $words[(math $separator + 1)..-1]) (commandline -ct))
end

# The names that are held or waited for now. Quick, or not at all.
function __interlock_names
    set -l words (commandline -opc)
    set -l store
    for i in (seq 2 (count $words))
        switch $words[$i]
            case --url --config
                test $i -lt (count $words); and set -a store $words[$i] $words[(math $i + 1)]
            case '--url=*' '--config=*'
                set -a store $words[$i]
        end
    end
    timeout 1 interlock $store list --all 2>/dev/null | sed -n '1d; s/  .*//p' | sort -u
end

complete -c interlock -f

# Commands.
complete -c interlock -n __interlock_none -a run -d 'Run a command under a lock'
complete -c interlock -n __interlock_none -a acquire -d 'Take a lock and print a token for it'
complete -c interlock -n __interlock_none -a extend -d "Give a token's lock more time"
complete -c interlock -n __interlock_none -a release -d "Give a token's lock back"
complete -c interlock -n __interlock_none -a who -d 'Who holds a lock?'
complete -c interlock -n __interlock_none -a list -d 'All locks, holders and waiters'
complete -c interlock -n __interlock_none -a watch -d 'Holders and waiters, live'
complete -c interlock -n __interlock_none -a top -d 'The busiest locks, live'
complete -c interlock -n __interlock_none -a serve -d 'Serve metrics for Prometheus'
complete -c interlock -n __interlock_none -a deadlocks -d 'Workers that wait for each other'
complete -c interlock -n __interlock_none -a break -d 'Take a lock away from its holder'
complete -c interlock -n __interlock_none -a repair -d 'Repair a damaged file store'
complete -c interlock -n __interlock_none -a schema -d 'Print the SQL of a PostgreSQL store'
complete -c interlock -n __interlock_none -a config -d 'Show the settings and where they come from'
complete -c interlock -n __interlock_none -a bench -d 'Measure the speed of the store'
complete -c interlock -n __interlock_none -a simulate -d 'Put load on a store, and check it'
complete -c interlock -n __interlock_none -a torture -d 'Try hard to break the locks of a store'
complete -c interlock -n __interlock_none -a help -d 'Show help'
complete -c interlock -n '__interlock_in help' -a "$commands"
complete -c interlock -n __interlock_none -l version -d 'Show the version'

# Options of every command.
complete -c interlock -n 'not __interlock_inner' -l url -x -a file:/// -d 'The store'
complete -c interlock -n 'not __interlock_inner' -l config -r -F -d 'The settings file'
complete -c interlock -n 'not __interlock_inner' -s v -l verbose -d 'Tell on stderr what happens'
complete -c interlock -n 'not __interlock_inner' -l log-level -x -a 'debug info warning error' -d 'Log what matters so much'
complete -c interlock -n 'not __interlock_inner' -l log-format -x -a 'logfmt json' -d 'How to log'
complete -c interlock -n 'not __interlock_inner' -s h -l help -d 'Show help'

# run and acquire.
set -l claim '__interlock_in run acquire'
complete -c interlock -n $claim -l also -x -a '(__interlock_names)' -d 'One more name, all or none'
complete -c interlock -n $claim -s s -l shared -d 'Share the lock with others that give --shared'
complete -c interlock -n $claim -l slots -x -d 'At most N at once'
complete -c interlock -n $claim -s n -l no-wait -d 'Give up at once if it is taken'
complete -c interlock -n $claim -s w -l wait -x -a '1s 10s 30s 1m 5m 1h' -d 'Give up after so long'
complete -c interlock -n $claim -l label -x -d 'What for'
complete -c interlock -n $claim -l identity -x -d "Users of one identity don't exclude each other"
complete -c interlock -n $claim -l actor -x -d 'The name of a sequential worker, for finding deadlocks'
complete -c interlock -n $claim -l priority -x -d 'Higher ones are served first'
complete -c interlock -n $claim -s q -l quiet -d 'Say nothing if it is taken'
complete -c interlock -n $claim -s E -l conflict-exit-code -x -d 'Exit status if it is taken'
complete -c interlock -n '__interlock_in run' -l at-least -x -a '10s 1m 5m' -d 'Keep the lock at least so long'
complete -c interlock -n '__interlock_in run' -l scrub -d "Take the store's passwords out of the command's environment"
complete -c interlock -n __interlock_inner -a '(__interlock_complete_inner)'
complete -c interlock -n '__interlock_in acquire' -l pid -x -a '(__fish_complete_pids)' -d 'Free it when this process ends'

# The others.
complete -c interlock -n '__interlock_in run acquire extend simulate' -l ttl -x -a '1s 10s 30s 1m 5m 1h' -d 'How long the lock outlives its holder'
complete -c interlock -n '__interlock_in acquire extend who list top deadlocks config bench simulate torture' -l json -d 'For programs'
complete -c interlock -n '__interlock_in run acquire who list watch top break' -a '(__interlock_names)'
complete -c interlock -n '__interlock_in list' -s a -l all -d 'Also what is held for something below it'
complete -c interlock -n '__interlock_in watch top' -l interval -x -a '100ms 500ms 1s 5s' -d 'How often to look'
complete -c interlock -n '__interlock_in top' -l sort -x -a 'waiting longest oldest changes name' -d 'What to sort by'
complete -c interlock -n '__interlock_in top' -l once -d 'Print it once'
complete -c interlock -n '__interlock_in serve' -l metrics -x -d 'Where to listen: [HOST:]PORT'
complete -c interlock -n '__interlock_in serve' -l names -d 'Also figures for each lock'
complete -c interlock -n '__interlock_in break' -s y -l yes -d "Don't ask"
complete -c interlock -n '__interlock_in repair' -l dry-run -d 'Only say what would be done'
complete -c interlock -n '__interlock_in config' -l check -d 'Ask the store, too'
complete -c interlock -n '__interlock_in bench simulate torture' -l duration -x -a '1s 10s 30s 1m 5m' -d 'How long'
complete -c interlock -n '__interlock_in bench simulate torture' -l threads -x -d 'How many at once'
complete -c interlock -n '__interlock_in simulate' -a 'time speed stress escalation scale'
complete -c interlock -n '__interlock_in simulate torture' -l processes -x -d 'Each with its own connection'
complete -c interlock -n '__interlock_in simulate' -l resources -x -d 'To choose from'
complete -c interlock -n '__interlock_in simulate' -l hold -x -a '1ms 10ms' -d 'A lock is held up to so long'
complete -c interlock -n '__interlock_in torture' -l keep -r -F -d 'Keep the history here'
complete -c interlock -n '__interlock_in simulate torture' -l seed -x -d 'What is left to chance'
complete -c interlock -n '__interlock_in simulate' -l svg -r -F -d 'Draw who waited and held'
complete -c interlock -n '__interlock_in simulate' -l no-lock -d 'To see the checks fail'
complete -c interlock -n '__interlock_in simulate' -l check -d 'Real processes beside the model'
complete -c interlock -n '__interlock_in simulate' -l locks -x -d 'Of the model'
complete -c interlock -n '__interlock_in simulate' -l think -x -a '10ms 1s' -d 'What a process does else'
complete -c interlock -n '__interlock_in simulate' -l profile -x -a 'all file redis redis-cluster redlock postgres postgres-lease etcd' -d 'Costs measured elsewhere'
