const movedSecretPattern = /^the secret (.+?) was set for /;

/** Formats the warning about a secret that may not be sent to every host of the tools. */
export function formatMovedSecret(name: string, hosts: string): string {
  return `the secret ${name} was set for ${hosts || 'no host'}; set it again to allow the other hosts too`;
}

/** Returns the name of the secret in a warning that `formatMovedSecret` formatted. */
export function parseMovedSecret(message: string): string | undefined {
  return movedSecretPattern.exec(message)?.[1];
}
