#compdef kubectl-metal3
# Completion of kubectl-metal3 for zsh: source <(kubectl metal3 completion zsh)
_kubectl_metal3() {
    local -a found
    found=("${(@f)$(kubectl-metal3 __complete "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
    compadd -S '' -a found
}
compdef _kubectl_metal3 kubectl-metal3
