import { type Fields, ok, problem, textsOf, type Verdict, warning } from './check.ts';
import { checkResourceMetadata, checkServerMetadata } from './check-metadata.ts';
import { type Answered, typeOfAnswer, Unreachable, type WebClient } from './web.ts';

export function readChallenge(page: Answered): { scheme: string | undefined; metadataUrl: string | undefined } {
  const challenge = page.headers.get('www-authenticate') ?? '';
  return {
    scheme: /^\s*([A-Za-z]+)/.exec(challenge)?.[1],
    metadataUrl: /resource_metadata\s*=\s*(?:"([^"]*)"|([^\s,]+))/i.exec(challenge)?.slice(1).find(Boolean),
  };
}

/** Checks a refusal without a credential (RFC 6750, 3; RFC 9728, 5.1). */
export function checkChallenge(page: Answered): Verdict {
  const { scheme, metadataUrl } = readChallenge(page);
  if (scheme?.toLowerCase() !== 'bearer')
    return problem('401 without "WWW-Authenticate: Bearer …", so clients do not know that they can log in.');
  if (metadataUrl === undefined)
    return warning(
      '401 without resource_metadata in its challenge; clients have to guess where the login is announced.',
    );
  if (!URL.canParse(metadataUrl))
    return problem(`resource_metadata is ${JSON.stringify(metadataUrl)}, which is no URL.`);
  return ok('401, with a link to the login.');
}

/** Where clients look for the metadata of a resource, in their order (RFC 9728, 3.1). */
function resourceUrls(address: string, named: string | undefined): string[] {
  const { origin, pathname } = new URL(address);
  const path = pathname === '/' ? '' : pathname;
  const usual = `${origin}/.well-known/oauth-protected-resource`;
  return [...new Set([...(named !== undefined && URL.canParse(named) ? [named] : []), `${usual}${path}`, usual])];
}

export async function findResource(
  web: WebClient,
  address: string,
  refusal: Answered,
): Promise<{ verdict: Verdict; resource?: Fields }> {
  const named = readChallenge(refusal).metadataUrl;
  const urls = resourceUrls(address, named);
  for (const url of urls) {
    const page = await quietly(web, url);
    if (page?.status !== 200 || !page.json) {
      if (url === named)
        return { verdict: problem(`The metadata that the challenge names is answered with ${faultOf(page)}.`) };
      continue;
    }
    const verdict = checkDocument(page, checkResourceMetadata(page.json, address));
    const isAtRoot = url === urls.at(-1) && urls.length > 1 && url !== named;
    if (verdict.status === 'ok' && isAtRoot)
      return {
        verdict: warning(`The metadata is only at ${url}; some clients look only below the path of the server.`, [
          'Zed',
        ]),
        resource: page.json,
      };
    return { verdict, resource: page.json };
  }
  return { verdict: problem('No metadata of the resource is found, so clients do not know where to log in.') };
}

/** Where clients look for the metadata of an issuer, in their order (RFC 8414, 3.1; OpenID Connect Discovery 1.0, 4). */
function issuerUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname === '/' ? '' : pathname.replace(/\/$/, '');
  return [
    ...new Set([
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}/.well-known/openid-configuration${path}`,
      `${origin}${path}/.well-known/openid-configuration`,
    ]),
  ];
}

export async function findIssuer(
  web: WebClient,
  resource: Fields,
): Promise<{ verdict: Verdict; issuer?: string; metadata?: Fields }> {
  const issuer = textsOf(resource.authorization_servers)[0];
  if (issuer === undefined || !URL.canParse(issuer))
    return { verdict: problem('The resource names no authorization server that could be asked.') };
  let last: Answered | undefined;
  for (const url of issuerUrls(issuer)) {
    const page = await quietly(web, url);
    last = page ?? last;
    if (page?.status !== 200 || !page.json) continue;
    return { verdict: checkDocument(page, checkServerMetadata(page.json, issuer)), issuer, metadata: page.json };
  }
  return {
    verdict: problem(`The authorization server ${issuer} has no metadata where clients look: ${faultOf(last)}.`),
  };
}

/** A document that pages read needs CORS; the wrong media type stops some parsers. */
function checkDocument(page: Answered, verdict: Verdict): Verdict {
  if (verdict.status !== 'ok') return verdict;
  if (!typeOfAnswer(page.headers).endsWith('json'))
    return warning(
      `${verdict.detail} But its Content-Type is ${typeOfAnswer(page.headers) || 'missing'}, not application/json.`,
    );
  return verdict;
}

/** Whether pages of other origins may read the documents; clients that run in a browser need that. */
export async function checkCors(web: WebClient, urls: readonly string[]): Promise<Verdict> {
  const refused: string[] = [];
  for (const url of urls) {
    const page = await quietly(web, url, { origin: 'https://client.example' });
    const allowed = page?.headers.get('access-control-allow-origin');
    if (allowed !== '*' && allowed !== 'https://client.example') refused.push(new URL(url).pathname);
  }
  if (refused.length === 0) return ok('Pages may read the metadata, as clients in a browser do.');
  return warning(
    `Clients that run in a browser may not read ${refused.join(' and ')}: no Access-Control-Allow-Origin.`,
    [],
  );
}

/** A look at a place where there may be nothing. */
async function quietly(
  web: WebClient,
  url: string,
  headers: Record<string, string> = {},
): Promise<Answered | undefined> {
  try {
    return await web.ask(url, { headers: { accept: 'application/json', ...headers } });
  } catch (error) {
    if (error instanceof Unreachable) return undefined;
    throw error;
  }
}

function faultOf(page: Answered | undefined): string {
  if (!page) return 'no answer';
  return page.status === 200 ? 'something that is no JSON object' : String(page.status);
}

/** Locations of the documents, for `checkCors`. */
export function documentUrls(address: string, refusal: Answered, issuer: string | undefined): string[] {
  const [resource] = resourceUrls(address, readChallenge(refusal).metadataUrl);
  const [server] = issuer === undefined ? [] : issuerUrls(issuer);
  return [resource, server].filter((url) => url !== undefined);
}
