/** Words that programs write where a variable has no value. */
const noValue = /^(?:undefined|null|None|nil|NaN|\[object Object\])$/;
/** Variables of shells, editors, agents and templates: ${NAME}, $NAME, $env:NAME, %NAME%, {{NAME}}, {env:NAME}. */
const variable =
  /^(?:\$\{[^{}]{2,}\}|\{\{[^{}]{2,}\}\}|\{env:[^{}]+\}|\$(?:env:)?[A-Z][A-Z0-9_]{2,}|%[A-Z][A-Z0-9_]{2,}%)$/;
/** Examples of documentation: <your-key>, YOUR_API_KEY, your-token-here, API_KEY. */
const example =
  /^(?:<[A-Za-z][\w .-]{2,}>|your[-_. ]?[a-z_. -]*(?:key|token|secret|here)|[A-Z_]*(?:KEY|TOKEN|SECRET))$/;

const longest = 100;

/** The reason why a credential is a placeholder that a client did not replace, with what to do; undefined for any other. */
export function placeholderProblem(credential: string): string | undefined {
  if (credential.length > longest) return undefined;
  if (variable.test(credential))
    return 'the credential is a variable that the client did not fill in; set the variable where the client runs, or write the credential itself into its configuration';
  if (example.test(credential) || example.test(credential.toLowerCase()))
    return 'the credential is the placeholder of an example; replace it with your own credential';
  if (noValue.test(credential))
    return `the client sent the word "${credential}" in place of a credential; its setting has no value, so set it and restart the client`;
  return undefined;
}
