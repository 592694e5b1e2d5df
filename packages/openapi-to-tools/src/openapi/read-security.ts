import { isHeaderName } from '@toolhost/tool-config/http/headers';
import { getField, isFields, type JsonFields, toEntries, toList, toText, toTexts } from '../document/lenient.ts';
import type { References } from '../document/references.ts';
import type { ApiRequirement, ApiScheme } from '../model.ts';

/** Maximum length of a scheme name; people could not answer a question about a longer one. */
const maxNameLength = 200;

/** Reads the security schemes of OpenAPI 3 and the security definitions of Swagger 2, by name. */
export function readSchemes(root: JsonFields, references: References): Map<string, ApiScheme> {
  const described = getField(getField(root, 'components'), 'securitySchemes') ?? root.securityDefinitions;
  const schemes = new Map<string, ApiScheme>();
  for (const [name, value] of toEntries(described)) {
    const scheme = references.follow(value).value;
    if (isFields(scheme) && name.length <= maxNameLength) schemes.set(name, readScheme(name, scheme));
  }
  return schemes;
}

function readScheme(name: string, scheme: JsonFields): ApiScheme {
  const description = toText(scheme.description);
  const type = toText(scheme.type).toLowerCase();
  const base: ApiScheme = { name, kind: 'unsupported', description };
  if (isAws(name, scheme)) return { ...base, kind: 'aws' };
  if (type === 'basic') return { ...base, kind: 'basic' };
  if (type === 'http') return toHttpScheme(base, toText(scheme.scheme).toLowerCase());
  if (type === 'apikey') return toKeyScheme(base, scheme);
  if (type === 'oauth2') return toOauthScheme(base, scheme);
  if (type === 'openidconnect') return { ...base, kind: 'bearer' };
  return { ...base, reason: `credentials of type ${JSON.stringify(type.slice(0, 40))}` };
}

function isAws(name: string, scheme: JsonFields): boolean {
  const type = toText(scheme['x-amazon-apigateway-authtype']).toLowerCase();
  return (
    type === 'awssigv4' || (name === 'hmac' && /^(?:(?!signature).)*signature.*v4/im.test(toText(scheme.description)))
  );
}

function toHttpScheme(base: ApiScheme, scheme: string): ApiScheme {
  if (scheme === 'basic') return { ...base, kind: 'basic' };
  if (scheme === 'bearer') return { ...base, kind: 'bearer' };
  if (scheme === 'digest' || scheme === 'mutual' || scheme === 'hoba') {
    return { ...base, reason: `HTTP authentication of type ${scheme}` };
  }
  // Any other scheme name is sent before the token, like Bearer.
  const schemePrefix = /^[a-z][a-z0-9_-]{0,40}$/.test(scheme) ? `${scheme[0]?.toUpperCase()}${scheme.slice(1)} ` : '';
  return { ...base, kind: 'key', in: 'header', parameter: 'Authorization', prefix: schemePrefix };
}

function toKeyScheme(base: ApiScheme, scheme: JsonFields): ApiScheme {
  const parameter = toText(scheme.name).trim();
  const location = toText(scheme.in);
  if (parameter === '') return { ...base, reason: 'a key without a name' };
  if (location !== 'header' && location !== 'query' && location !== 'cookie') {
    return { ...base, reason: `a key in ${JSON.stringify(location.slice(0, 40))}` };
  }
  if (location === 'header' && !isHeaderName(parameter)) {
    return {
      ...base,
      reason: `a key in the header ${JSON.stringify(parameter.slice(0, 60))}, which is not a valid header name`,
    };
  }
  if (location === 'query' && !/^[A-Za-z0-9_.~-]{1,64}$/.test(parameter)) {
    return { ...base, reason: `a key in the query as ${JSON.stringify(parameter.slice(0, 60))}` };
  }
  const prefix = location === 'header' ? findPrefix(parameter, base.description) : '';
  if (location === 'header' && /^authorization$/i.test(parameter) && /^bearer $/i.test(prefix)) {
    return { ...base, kind: 'bearer' };
  }
  return { ...base, kind: 'key', in: location, parameter, prefix };
}

/**
 * Returns the text before a key, as shown in descriptions: `Token token=KEY`, `Klaviyo-API-Key your-key`, `Bearer
 * <token>`.
 */
function findPrefix(parameter: string, description: string): string {
  const match =
    /(?:format|value|prefix|header|authorization)\b[^\n]{0,60}?[`"':\s](Token token=|(?:Bearer|Token|[A-Z][A-Za-z]+-API-Key|Apikey|ApiKey|SSWS|GenieKey|Bot|Key)(?=[\s=]))/i.exec(
      description,
    )?.[1];
  if (match === undefined || !/^authorization$/i.test(parameter)) return '';
  return match.endsWith('=') ? match : `${match} `;
}

function toOauthScheme(base: ApiScheme, scheme: JsonFields): ApiScheme {
  const flows = isFields(scheme.flows) ? scheme.flows : toFlows(scheme);
  const codeFlow = getField(flows, 'authorizationCode') ?? getField(flows, 'accessCode');
  const clientFlow = getField(flows, 'clientCredentials') ?? getField(flows, 'application');
  const loginFlow = codeFlow ?? getField(flows, 'implicit');
  const getUrl = (flow: unknown, name: string) => toText(getField(flow, name)) || undefined;
  return {
    ...base,
    kind: 'oauth2',
    authorizationUrl: getUrl(loginFlow, 'authorizationUrl'),
    tokenUrl: getUrl(codeFlow, 'tokenUrl'),
    clientTokenUrl: getUrl(clientFlow, 'tokenUrl'),
  };
}

function toFlows(scheme: JsonFields): JsonFields {
  return { [toText(scheme.flow) || 'implicit']: scheme };
}

/** Reads the `security` of the document or of an operation. Returns undefined if there is none. */
export function readRequirements(value: unknown): ApiRequirement[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const requirements = toList(value)
    .filter(isFields)
    .map((requirement) => new Map(toEntries(requirement).map(([name, scopes]) => [name, toTexts(scopes)])));
  return value.length === 0 ? [new Map()] : requirements;
}
