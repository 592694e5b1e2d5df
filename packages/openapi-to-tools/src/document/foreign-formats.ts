import { getField, isFields, toList } from './lenient.ts';

/** Known format that cannot be imported, and how to get one that can. */
type UnsupportedFormat = { name: string; instructions: string };
type UnsupportedTextFormat = UnsupportedFormat & { matches: RegExp };
type UnsupportedValueFormat = UnsupportedFormat & { matches: (value: object) => boolean };

const exportRequests = 'Save its requests as a Postman collection, curl commands, or HAR, and import those.';
const viaCurl = 'Write the requests as curl commands or in an .http file.';

/** Maximum number of characters at the beginning of a text that are searched for the signs of a format. */
const maxSearched = 20_000;

const textFormats: readonly UnsupportedTextFormat[] = [
  {
    name: 'a WSDL description (SOAP)',
    matches: /^<[^!][^>]*\bwsdl\b|<(?:\w+:)?definitions\b[^>]*\bxmlns[^>]*wsdl/i,
    instructions: `${exportRequests} SoapUI and Postman read WSDL, and each call becomes a tool.`,
  },
  {
    name: 'a WADL description',
    matches: /<(?:\w+:)?application\b[^>]*wadl/i,
    instructions: `Ask for the OpenAPI document of the API. If there is none: ${exportRequests}`,
  },
  {
    name: 'OData metadata',
    matches: /<(?:\w+:)?Edmx\b/i,
    instructions: 'Convert it to OpenAPI first, for example with: npx -p odata-openapi odata-openapi3 metadata.xml',
  },
  { name: 'a JMeter test plan', matches: /<jmeterTestPlan\b/, instructions: exportRequests },
  { name: 'a SoapUI project', matches: /<(?:\w+:)?soapui-project\b/, instructions: exportRequests },
  {
    name: 'RAML',
    matches: /^#%RAML/,
    instructions: 'Convert it to OpenAPI first; the MuleSoft API Designer exports it.',
  },
  {
    name: 'API Blueprint',
    matches: /^FORMAT:\s*1A|^#{1,3} [^\n]*\[(?:GET|POST|PUT|PATCH|DELETE)\b|^\+ Response \d{3}/m,
    instructions: 'Convert it to OpenAPI first, for example with: npx apib2swagger -i api.apib -o openapi.json',
  },
  {
    name: 'Protocol Buffers (gRPC)',
    matches: /^\s*(?:syntax|edition)\s*=\s*["']|^\s*service\s+\w+\s*\{[^}]*\brpc\s/m,
    instructions:
      'Import the OpenAPI document of a gateway instead; protoc-gen-openapiv2 generates it from google.api.http annotations.',
  },
  {
    name: 'a GraphQL schema',
    matches: /^\s*(?:extend\s+)?(?:schema\s*(?:@[^\n{]*)?\{|type\s+(?:Query|Mutation)\b)/m,
    instructions:
      'Save the queries that agents need as a Postman collection, curl commands, or HAR. Each becomes a tool.',
  },
  {
    name: 'TypeSpec',
    matches: /^\s*import\s+["']@typespec\//m,
    instructions: 'Compile it to OpenAPI first: npx tsp compile . --emit @typespec/openapi3',
  },
  {
    name: 'Smithy',
    matches: /^\s*\$version:\s*["']|^\s*namespace\s+[\w.]+\s*$[\s\S]{0,2000}^\s*(?:service|operation)\s+\w+\s*\{/m,
    instructions: 'Convert it to OpenAPI first, with the openapi plugin of smithy build.',
  },
  {
    name: 'a PowerShell command',
    matches: /\bInvoke-(?:RestMethod|WebRequest)\b|WebRequestSession\b/i,
    instructions: 'In the browser, choose "Copy as cURL" or "Save all as HAR" instead.',
  },
  {
    name: 'an HTTPie command',
    matches: /^\s*(?:\$\s+)?(?:https?|xhs?)\s+(?:-\S|[A-Z]{3,7}\s|:?\/|[\w-]+[.:]\S|localhost)/,
    instructions: 'Print the request with http --offline --print=HB … and import the output.',
  },
  { name: 'a wget command', matches: /^\s*(?:\$\s+)?wget\s/, instructions: viaCurl },
  {
    name: 'a program',
    matches:
      /^\s*(?:import requests\b|from \w+ import |#!\/|<\?php|package \w+|using [\w.]+;|public class )|\brequests\.(?:get|post|put|patch|delete)\(|\baxios(?:\.\w+)?\(|['"]k6\/http['"]/m,
    instructions: viaCurl,
  },
  { name: 'a ZIP file', matches: /^PK[^\w\s]/, instructions: 'Unpack it and import the description in it.' },
  {
    name: 'a PDF file',
    matches: /^%PDF-/,
    instructions: `Look for an OpenAPI document of the API. If there is none: ${viaCurl}`,
  },
  {
    name: 'an address',
    matches: /^https?:\/\/\S+$/i,
    instructions: 'Import it as the address of the description, not as its text.',
  },
];

const hasFields =
  (...names: string[]) =>
  (value: object) =>
    names.every((name) => getField(value, name) !== undefined);

const valueFormats: readonly UnsupportedValueFormat[] = [
  {
    name: 'AsyncAPI',
    matches: hasFields('asyncapi'),
    instructions: 'It describes messages. Import the OpenAPI document of the HTTP API instead.',
  },
  {
    name: 'a GraphQL schema',
    matches: (value) =>
      [value, getField(value, 'data')].some((candidate) => getField(candidate, '__schema') !== undefined),
    instructions:
      'Save the queries that agents need as a Postman collection, curl commands, or HAR. Each becomes a tool.',
  },
  {
    name: 'OpenRPC',
    matches: hasFields('openrpc'),
    instructions: 'Save the calls as a Postman collection or curl commands. Each method becomes a tool.',
  },
  {
    name: 'an OpenAPI Overlay',
    matches: hasFields('overlay', 'actions'),
    instructions: 'Apply it to its OpenAPI document and import the result.',
  },
  {
    name: 'Arazzo',
    matches: hasFields('arazzo'),
    instructions: 'Import the OpenAPI documents listed in its sourceDescriptions.',
  },
  {
    name: 'a Google API discovery document',
    matches: (value) => /^discovery#/.test(String(getField(value, 'kind'))),
    instructions: 'Convert it to OpenAPI first; https://apis.guru has the Google APIs.',
  },
  {
    name: 'a Smithy or AWS service model',
    matches: (value) => hasFields('smithy', 'shapes')(value) || hasFields('metadata', 'operations', 'shapes')(value),
    instructions: 'Convert it to OpenAPI first; https://apis.guru has the AWS APIs.',
  },
  {
    name: 'a Postman environment',
    matches: (value) =>
      hasFields('_postman_variable_scope')(value) || (hasFields('values', 'name')(value) && !hasFields('item')(value)),
    instructions: 'It holds only values. Export the collection (v2.1) and import that.',
  },
  {
    name: 'a Postman collection of format 1',
    matches: hasFields('requests', 'order'),
    instructions: 'Open it in Postman and export it as Collection v2.1.',
  },
  {
    name: 'a Postman data dump',
    matches: hasFields('collections', 'environments'),
    instructions: 'Export the collection that you need (v2.1) and import that.',
  },
  {
    name: 'an Insomnia environment',
    matches: (value) => /^environment\.insomnia/.test(String(getField(value, 'type'))),
    instructions: 'It holds only values. Export the collection and import that.',
  },
  {
    name: 'the settings of a Bruno or OpenCollection folder',
    matches: (value) =>
      (getField(value, 'type') === 'collection' && hasFields('version')(value)) || hasFields('opencollection')(value),
    instructions:
      'Its requests are in other files. Export the collection as one file, or import all of them: cat *.bru */*.bru | toolhost import -',
  },
  {
    name: 'a Thunder Client collection',
    matches: (value) => /thunder/i.test(String(getField(value, 'client') ?? getField(value, 'clientName'))),
    instructions: 'Export it as a Postman collection or as OpenAPI.',
  },
  {
    name: 'a Hoppscotch collection',
    matches: (value) =>
      [value, ...toList(value)].some((candidate) => hasFields('folders', 'requests')(Object(candidate))),
    instructions: 'Export it as OpenAPI, or copy its requests as curl commands.',
  },
  {
    name: 'a JSON Schema',
    matches: (value) => /json-schema\.org/.test(String(getField(value, '$schema'))),
    instructions: 'It describes no requests. Import the OpenAPI document that refers to it.',
  },
  {
    name: 'the configuration of an MCP client',
    matches: hasFields('mcpServers'),
    instructions: 'It lists MCP servers that already exist. Import the description of an HTTP API instead.',
  },
];

/** Names a format that cannot be read and explains what to do instead. Returns undefined for an unknown format. */
export function explainUnsupportedFormat(text: string, value?: unknown): string | undefined {
  const start = text.slice(0, maxSearched);
  const format =
    (isFields(value) || Array.isArray(value)
      ? valueFormats.find(({ matches }) => matches(value as object))
      : undefined) ?? textFormats.find(({ matches }) => matches.test(start));
  return format && `Found ${format.name}, which Toolhost cannot read. ${format.instructions}`;
}
