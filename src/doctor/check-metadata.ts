import { type Fields, ok, problem, textsOf, type Verdict, warning } from './check.ts';

/** Checks the metadata of a protected resource (RFC 9728, 2). Clients compare `resource` with the address as text. */
export function checkResourceMetadata(resource: Fields, address: string): Verdict {
  if (typeof resource.resource !== 'string') return problem('"resource" is missing.');
  if (resource.resource !== address) {
    const isSlash = resource.resource.replace(/\/$/, '') === address.replace(/\/$/, '');
    const detail = `"resource" is ${shown(resource.resource)}, not ${address}; clients compare it as it stands.`;
    return isSlash
      ? warning(`${detail} Only the slash at the end differs, which some of them forgive.`)
      : problem(detail);
  }
  const servers = textsOf(resource.authorization_servers);
  if (servers.length === 0) return problem('It names no authorization server.');
  const unusable = servers.filter((server) => !URL.canParse(server));
  if (unusable.length > 0) return problem(`The authorization server ${shown(unusable[0] as string)} is not a URL.`);
  return ok('The resource is exactly the address that people configure.');
}

const endpoints = ['authorization_endpoint', 'token_endpoint'] as const;

/** Checks the metadata of an authorization server (RFC 8414, 2). `issuer` is the text that led to it. */
export function checkServerMetadata(metadata: Fields, issuer: string): Verdict {
  if (metadata.issuer !== issuer)
    return problem(`"issuer" is ${shown(metadata.issuer)}, not ${issuer}; clients compare it as it stands.`);
  const missing = endpoints.filter((name) => typeof metadata[name] !== 'string');
  if (missing.length > 0) return problem(`${missing.join(' and ')} is missing.`);
  const unsafe = endpoints.filter((name) => !isSafeUrl(metadata[name] as string));
  if (unsafe.length > 0) return problem(`${unsafe.join(' and ')} is neither https nor on a loopback address.`);
  if (!textsOf(metadata.code_challenge_methods_supported).includes('S256'))
    return problem('PKCE with S256 is not announced, and clients must not go on without it.');
  const types = metadata.response_types_supported;
  if (types !== undefined && !textsOf(types).includes('code'))
    return problem('The response type "code" is not announced.');
  const grants = metadata.grant_types_supported;
  if (grants !== undefined && !textsOf(grants).includes('authorization_code'))
    return problem('The grant type "authorization_code" is not announced.');
  return ok('The issuer is as announced, and every endpoint is there.');
}

/** Checks how clients get a client id: by dynamic registration (RFC 7591) or by a client metadata document. */
export function checkRegistrationMetadata(metadata: Fields): Verdict {
  if (typeof metadata.registration_endpoint === 'string') return ok('Clients can register themselves.');
  if (metadata.client_id_metadata_document_supported === true)
    return warning(
      'Only client metadata documents are taken; clients that know only dynamic registration cannot log in.',
    );
  return problem('There is no registration_endpoint, so each person must get a client id and type it into the client.');
}

/** Whether a URL is https, or on a loopback address. */
export function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'missing').slice(0, 200);
}
