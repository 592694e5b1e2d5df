import { contexts } from '../../store/sealing/sealed-columns.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';

/** What a login in flight keeps sealed: nobody who reads the database can finish it, or pose as the client's answer. */
export type LoginSecrets = {
  /** Our PKCE verifier towards the provider. */
  verifier: string;
  /** The client's own `state`. */
  clientState: string | undefined;
  /** What the person agreed to; a server that has changed since is not given the login. */
  agreement: string;
};

export function sealLoginSecrets(keyring: Keyring, id: string, secrets: LoginSecrets): string {
  return keyring.seal(JSON.stringify(secrets), contexts.login(id));
}

export function openLoginSecrets(keyring: Keyring, id: string, sealed: string): LoginSecrets {
  const secrets = JSON.parse(keyring.open(sealed, contexts.login(id))) as Partial<LoginSecrets>;
  return { verifier: '', clientState: undefined, agreement: '', ...secrets };
}
