# Completion of kubectl-metal3 for fish: kubectl metal3 completion fish | source
complete -c kubectl-metal3 -f -a '(kubectl-metal3 __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
