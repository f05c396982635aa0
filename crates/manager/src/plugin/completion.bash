# Completion of kubectl-metal3 for bash: source <(kubectl metal3 completion bash)
_kubectl_metal3() {
    local IFS=$'\n'
    COMPREPLY=($(kubectl-metal3 __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -F _kubectl_metal3 kubectl-metal3
