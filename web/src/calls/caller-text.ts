const kinds: { [kind: string]: string } = {
  api_key: 'API key',
  oauth: 'Login',
  grant: 'Login',
  passthrough: 'Login',
  caller_token: 'Own token',
  token: 'Own token',
  user: 'Dashboard',
};

/** Who called, in words. */
export function callerText(kind: string): string {
  return kinds[kind] ?? kind.replaceAll('_', ' ');
}
