import { invalidInputError } from '@toolhost/errors/errors';
import { parseUrl } from '@toolhost/tool-config/http/read-url';

/**
 * Finds API descriptions in web pages. Pages that show a description (Swagger UI, Redoc, Scalar, RapiDoc, Stoplight
 * Elements) and the scripts that they load contain its address or the description itself. Fetches nothing.
 */

/** Maximum number of characters of a page that are searched. An embedded description is read completely. */
const maxSearched = 2 * 1024 * 1024;

/** Result of inspecting a page, a script, or a Swagger UI configuration. */
export type PageStep = { document: string } | { address: string };

/**
 * Maximum number of steps from an address to the description: a page, its script, and the configuration that the script
 * names.
 */
export const maxPageSteps = 4;

/**
 * Returns true if bytes may be a page, judging by their beginning. After the first step, they may also be a script or a
 * configuration.
 */
export function canBePage(bytes: Uint8Array, stepCount: number): boolean {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 200)).toString('latin1').trimStart();
  return (
    start
      .replace(/^\u00ef\u00bb\u00bf/, '')
      .trimStart()
      .startsWith('<') || stepCount > 0
  );
}

/**
 * Returns the next step from a page, or undefined if the text is not a page.
 * @param url address of the page
 * @throws AppError invalid if the page names no description, or several
 */
export function readPageStep(text: string, url: string): PageStep | undefined {
  const kind = getKind(text);
  if (kind === undefined) return undefined;
  const document = findEmbeddedDocument(text);
  if (document !== undefined) return { document };
  const descriptionUrls = findAddresses(text);
  const candidates =
    descriptionUrls.length > 0 ? descriptionUrls : kind === 'page' ? findScripts(text).slice(0, 1) : [];
  const addresses = [...new Set(candidates.flatMap((address) => parseUrl(address, url)?.href ?? []))].filter(
    (candidate) => candidate !== url,
  );
  const [address, ...otherAddresses] = addresses;
  if (address === undefined) throw createUrlError(explainPage(text));
  if (otherAddresses.length > 0) {
    const list = addresses.slice(0, 10).join(', ');
    throw createUrlError(
      `The page shows ${addresses.length} API descriptions. Import one of them by its address: ${list}`,
    );
  }
  return { address };
}

/** Explains why a page cannot be read directly, with the address that it names. */
export function explainPage(text: string): string {
  const [address] = findAddresses(text);
  if (address !== undefined) {
    return `This is a page that shows the API description at ${JSON.stringify(address.slice(0, 300))}. Import that address, or the address of the page.`;
  }
  const kind = /^\s*<\?xml/i.test(text) ? 'XML' : 'a web page without an API description';
  return `Found ${kind}. Import OpenAPI or Swagger as JSON or YAML instead; it is often at /openapi.json or /v3/api-docs.`;
}

function getKind(text: string): 'page' | 'script' | 'configuration' | undefined {
  const start = text
    .slice(0, maxSearched)
    .replace(/^\ufeff/, '')
    .trimStart();
  if (/^<(?!\?xml(?![\s\S]{0,500}<html))/i.test(start))
    return /<(?:!doctype html|html|head|body|script|div)\b/i.test(start) ? 'page' : undefined;
  if (/^\{/.test(start) && !/"(?:openapi|swagger)"\s*:/.test(start))
    return /"(?:configUrl|urls|oauth2RedirectUrl|validatorUrl)"\s*:/.test(start) ? 'configuration' : undefined;
  return /SwaggerUI|swagger-ui|swaggerDoc|Redoc|Scalar/.test(start) &&
    !/^\s*["']?(?:openapi|swagger)["']?\s*:/m.test(start)
    ? 'script'
    : undefined;
}

/**
 * Texts before a description embedded in a page or script, and the maximum number of occurrences of each that are
 * checked.
 */
const markers = [
  '__redoc_state',
  'id="api-reference"',
  "id='api-reference'",
  'swaggerDoc',
  '"spec"',
  'spec:',
  '"content"',
  'content:',
];
const maxMarkers = 20;
/** Maximum number of characters between a marker and the brace. */
const maxDistance = 400;

/** Returns the description embedded in a page, as JSON. */
export function findEmbeddedDocument(text: string): string | undefined {
  for (const marker of markers) {
    let position = text.indexOf(marker);
    for (let count = 0; position >= 0 && count < maxMarkers; count++, position = text.indexOf(marker, position + 1)) {
      const brace = text.slice(position, position + maxDistance).indexOf('{');
      const document = brace < 0 ? undefined : readEmbedded(text, position + brace);
      if (document !== undefined) return document;
    }
  }
  return undefined;
}

/** Returns the description that starts at a brace, or in an object nested shortly after the brace. */
function readEmbedded(text: string, brace: number): string | undefined {
  const match = /\{\s*"(?:openapi|swagger)"\s*:/.exec(text.slice(brace, brace + maxDistance));
  return match ? readBalanced(text, brace + match.index) : undefined;
}

/** Returns the text from an opening brace to its closing brace. */
function readBalanced(text: string, from: number): string | undefined {
  let depth = 0;
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}]/gs;
  tokens.lastIndex = from;
  for (let match = tokens.exec(text); match; match = tokens.exec(text)) {
    if (match[0] === '{') depth++;
    else if (match[0] === '}' && --depth === 0) return text.slice(from, tokens.lastIndex);
  }
  return undefined;
}

/** Match tools that show descriptions, and the attributes, settings, and calls that tell such a tool an address. */
const viewers = /swagger-?ui|swaggerui|redoc|scalar|rapi-?doc|elements-api|api-reference|api-docs/i;
const attributes =
  /\b(?:spec-url|data-url|data-spec-url|apiDescriptionUrl|api-description-url|spec)\s*=\s*["']([^"']{1,2000})["']/gi;
const settings =
  /["']?\b(?:url|specUrl|specURL|openApiUrl|configUrl)["']?\s*:\s*(?:[\w.$()]{1,60}\s*\+\s*)?["'`]([^"'`\n]{1,2000})["'`]/g;
const calls = /\bRedoc\.init\(\s*["'`]([^"'`\n]{1,2000})["'`]/g;
const links = /\bhref=["']([^"'\s<>]{1,500})["']/gi;
const descriptionPattern = /(?:openapi|swagger|api-docs)[^/?#]*\.(?:json|ya?ml)(?:[?#]|$)/i;

/** Returns addresses of descriptions exactly as they appear in a page. */
function findAddresses(text: string): string[] {
  const searched = text.slice(0, maxSearched).replaceAll('&quot;', '"').replaceAll('&amp;', '&');
  if (!viewers.test(searched) && !/"(?:configUrl|urls|validatorUrl|oauth2RedirectUrl)"/.test(searched)) return [];
  const urls = [attributes, calls, settings].flatMap((pattern) =>
    [...searched.matchAll(pattern)].map(([, url]) => url as string),
  );
  const linked = [...searched.matchAll(links)]
    .map(([, url]) => url as string)
    .filter((url) => descriptionPattern.test(url));
  const addresses = urls.length > 0 ? urls : linked;
  const described = [...new Set(addresses)].filter(
    (url) => !/\.(?:js|css|png|svg|ico|html?)(?:[?#]|$)|^\s*[{$#]|validator|oauth2-redirect/i.test(url),
  );
  // Swagger UI scripts name its sample API until someone changes them.
  const withoutSample = described.filter((url) => !/petstore\.swagger\.io/.test(url));
  return withoutSample.length > 0 ? withoutSample : described;
}

/** Returns the Swagger UI scripts that contain the address of the description. */
function findScripts(text: string): string[] {
  const matches = text.slice(0, maxSearched).matchAll(/\bsrc=["']([^"'\s<>]{1,1000})["']/gi);
  const scripts = [...matches].map(([, address]) => address as string);
  const initializerPattern = /swagger-initializer|swagger-ui-init|swagger_ui|swagger-config/i;
  return [
    ...scripts.filter((url) => initializerPattern.test(url)),
    ...scripts.filter((url) => /(?:^|\/)(?:index|docs)[\w.-]*\.js/i.test(url)),
  ];
}

function createUrlError(message: string): Error {
  return invalidInputError([{ path: 'url', message }], 'The document was not imported');
}
