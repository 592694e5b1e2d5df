const kinds: { [kind: string]: string } = {
  api_key: 'API key',
  oauth: 'Login',
  caller_token: 'Own token',
};

/** Who called, in words. */
export function callerText(kind: string): string {
  return kinds[kind] ?? kind.replaceAll('_', ' ');
}
