import type { ApiDescription, Finding } from '../model.ts';
import { type BruBlock, type BruPair, readBruBlocks, readBruPairs } from './bru-blocks.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import { addQuery, type CollectionPair, listSentHeaders, toDescribedInputs } from './pairs.ts';
import { collectVariables } from './placeholders.ts';
import { type BodyField, createGraphqlBody, type RequestBody, readBodyText } from './request-bodies.ts';

/** Blocks of one file. Without `request`, they are the defaults of a folder or collection for its requests. */
type BruFile = { blocks: BruBlock[]; request: BruBlock | undefined };

const verbPattern = /^(?:get|post|put|patch|delete|head|options|trace|connect|query|http)$/;

/** Reads Bruno requests: a single `.bru` file, or the concatenated files of a collection. */
export function readBru(text: string): ApiDescription {
  const blocks = readBruBlocks(text);
  const files = splitFiles(blocks);
  const shared = files.filter(({ request }) => !request).flatMap((file) => file.blocks);
  const findings: Finding[] = [];
  const requests = files.flatMap((file) => toRequests(file, shared, findings));
  const values = blocks
    .filter(({ name }) => /^vars(?::pre-request)?$/.test(name))
    .flatMap((block) => readBruPairs(block).map(({ name, value }): [string, string] => [name, value]));
  const scripts = blocks.filter(({ name }) => /^script:/.test(name)).length;
  if (scripts > 0)
    findings.push({
      at: 'document',
      message: `has ${scripts} scripts, which are left out: a tool only sends the request`,
    });
  const variables = collectVariables(values);
  const title = findHostTitle(requests, requests[0]?.name ?? 'Bruno', variables);
  const source = { format: 'Bruno' as const, version: '', title, description: '', variables };
  return describeRequests(requests, source, findings);
}

/**
 * Splits blocks into files. A request begins with `meta`. Blocks named just `auth` or `vars` belong to a folder, a
 * collection, or an environment. `query` is the method QUERY, or after another method the older name of `params:query`.
 */
function splitFiles(blocks: readonly BruBlock[]): BruFile[] {
  const files: BruFile[] = [];
  for (const block of blocks) {
    const hasRequest = files.at(-1)?.request !== undefined;
    const isMethod = verbPattern.test(block.name) && !(hasRequest && block.name === 'query');
    const endsRequest = isMethod || block.name === 'auth' || block.name === 'vars';
    if (files.length === 0 || block.name === 'meta' || (hasRequest && endsRequest))
      files.push({ blocks: [], request: undefined });
    const file = files.at(-1) as BruFile;
    file.blocks.push(block);
    if (isMethod) file.request = block;
  }
  return files;
}

function toRequests(
  { blocks, request }: BruFile,
  shared: readonly BruBlock[],
  findings: Finding[],
): DescribedRequest[] {
  const findBlock = (name: string) => blocks.find((block) => block.name === name && block !== request);
  if (!request) {
    const isOtherProtocol = blocks.some(({ name }) => /^(?:grpc|ws)$/.test(name));
    if (isOtherProtocol) findings.push({ at: `line ${blocks[0]?.line}`, message: 'is not an HTTP request; left out' });
    return [];
  }
  const requestPairs = readBruPairs(request);
  const query = toPairs([...readBruPairs(findBlock('params:query')), ...readBruPairs(findBlock('query'))]);
  const headers = toPairs([
    ...shared.filter(({ name }) => name === 'headers').flatMap(readBruPairs),
    ...readBruPairs(findBlock('headers')),
  ]);
  const url = getPairValue(requestPairs, 'url');
  const at = `line ${request.line}`;
  if (url === '') {
    findings.push({ at, message: 'is not a request with a URL; left out' });
    return [];
  }
  return [
    {
      name: getPairValue(readBruPairs(findBlock('meta')), 'name'),
      description: (findBlock('docs')?.lines ?? []).join('\n').trim(),
      method:
        request.name === 'http'
          ? (getPairValue(requestPairs, 'method') || 'GET').toUpperCase()
          : request.name.toUpperCase(),
      url: addQuery(url, query),
      headers: listSentHeaders(headers),
      body: readBody(getPairValue(requestPairs, 'body'), findBlock, listSentHeaders(headers)),
      auth: readAuth(getPairValue(requestPairs, 'auth'), blocks, shared),
      inputs: [
        ...toDescribedInputs('path', toPairs(readBruPairs(findBlock('params:path')))),
        ...toDescribedInputs('query', query),
        ...toDescribedInputs('header', headers),
      ],
      at,
    },
  ];
}

function getPairValue(pairs: readonly BruPair[], name: string): string {
  return pairs.find((pair) => pair.name === name)?.value ?? '';
}

function toPairs(pairs: readonly BruPair[]): CollectionPair[] {
  return pairs.map((pair) => ({ ...pair, isFile: false }));
}

/**
 * Returns the authentication of a request. A request that inherits uses the `auth` block of the collection or folder.
 */
function readAuth(mode: string, blocks: readonly BruBlock[], shared: readonly BruBlock[]): DescribedRequest['auth'] {
  const inherited = shared.find(({ name }) => name === 'auth');
  const isInherited = mode === 'inherit' || mode === '';
  const type = isInherited ? getPairValue(readBruPairs(inherited), 'mode') : mode;
  const details = readBruPairs((isInherited ? shared : blocks).find(({ name }) => name === `auth:${type}`));
  return readBrunoAuth(type, (name) => getPairValue(details, name));
}

/** Converts a Bruno authentication type. `getDetail` returns a setting of the type by its name. */
export function readBrunoAuth(type: string, getDetail: (name: string) => string): DescribedRequest['auth'] {
  if (type === '' || type === 'none' || type === 'inherit') return undefined;
  if (type === 'basic') return 'basic';
  if (type === 'bearer' || type === 'oauth2') return 'bearer';
  if (type === 'awsv4') return { region: getDetail('region'), service: getDetail('service') };
  if (type !== 'apikey') return { unsupported: type };
  const isQuery = /query/i.test(getDetail('placement'));
  return { in: isQuery ? 'query' : 'header', name: getDetail('key') || (isQuery ? 'api_key' : 'X-API-Key') };
}

/** Media types of text bodies, by Bruno mode. */
export const brunoTypes: ReadonlyMap<string, string> = new Map(
  Object.entries({
    json: 'application/json',
    text: 'text/plain',
    xml: 'application/xml',
    sparql: 'application/sparql-query',
  }),
);

function readBody(
  mode: string,
  findBlock: (name: string) => BruBlock | undefined,
  headers: readonly [string, string][],
): RequestBody | undefined {
  const contentType = headers.find(([name]) => /^content-type$/i.test(name))?.[1];
  const getText = (name: string) => (findBlock(name)?.lines ?? []).join('\n').trim();
  if (/^form-?url-?encoded$/i.test(mode)) {
    const fields = readBruPairs(findBlock('body:form-urlencoded')).map(toField);
    return { mediaType: 'application/x-www-form-urlencoded', fields };
  }
  if (/^multipart-?form$/i.test(mode))
    return { mediaType: 'multipart/form-data', fields: readBruPairs(findBlock('body:multipart-form')).map(toField) };
  if (mode === 'graphql') return createGraphqlBody(getText('body:graphql'), getText('body:graphql:vars'));
  if (mode === 'file') {
    const [file] = readBruPairs(findBlock('body:file'));
    const declaredType = /@contentType\(([^)]*)\)/.exec(file?.value ?? '')?.[1];
    return { mediaType: contentType ?? (declaredType || 'application/octet-stream'), text: '' };
  }
  const type = brunoTypes.get(mode);
  return type === undefined ? undefined : readBodyText(contentType ?? type, getText(`body:${mode}`) || getText('body'));
}

/** Converts a pair to a form field. `@file(path) @contentType(image/png)` is a file. */
function toField({ name, value, description }: BruPair): BodyField {
  const mediaType = /@contentType\(([^)]*)\)/.exec(value)?.[1];
  const isFile = value.startsWith('@file(');
  const text = isFile ? '' : value.replace(/\s*@contentType\([^)]*\)\s*$/, '');
  return { name, value: text, isFile, description, ...(mediaType !== undefined && { mediaType }) };
}
