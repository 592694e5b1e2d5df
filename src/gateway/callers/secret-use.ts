import { plainFailure } from '../../errors.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';

/**
 * The value of a secret for the origin that it is about to be sent to. A secret goes only to the origins that the
 * server had when the value was set, so that a later change of a URL cannot expose it.
 * @throws ToolFailure secret_missing; it names the secret, never a value
 */
export function secretFor(server: HostedServer, name: string, origin: string): string {
  const secret = server.secrets.get(name);
  if (!secret) throw plainFailure('secret_missing', `the secret ${name} has no value; set it on the server first`);
  if (!secret.origins.includes(origin)) {
    throw plainFailure(
      'secret_missing',
      `the secret ${name} was set before this tool called ${origin}; set it again to allow that host`,
    );
  }
  return secret.value;
}
