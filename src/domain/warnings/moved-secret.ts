const pattern = /^the secret (.+?) was set for /;

/** What is said of a secret that may not go to every host of the tools. */
export function movedSecretMessage(name: string, hosts: string): string {
  return `the secret ${name} was set for ${hosts || 'no host'}; set it again to let it go to the other hosts too`;
}

/** The name of the secret in such a message. */
export function movedSecretIn(message: string): string | undefined {
  return pattern.exec(message)?.[1];
}
