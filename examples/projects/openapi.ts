import { type Table, tables } from './tables.ts';

const responses = { '2XX': { description: 'The rows, or nothing after a write that does not prefer them' } };
const prefer = { name: 'Prefer', in: 'header', required: true, schema: { enum: ['return=representation'] } };

/** Describes the API in OpenAPI 3.1 for an import. */
export const openApiDocument = {
  openapi: '3.1.0',
  info: { title: 'Projects', version: '1', description: 'Projects and their tasks.' },
  servers: [{ url: '/rest/v1' }],
  components: { securitySchemes: { projects_key: { type: 'apiKey', in: 'header', name: 'apikey' } } },
  security: [{ projects_key: [] }],
  paths: Object.fromEntries(tables.map((table) => [`/${table.name}`, buildOperations(table)])),
};

function buildOperations({ name, columns }: Table): object {
  const one = name.slice(0, -1);
  const filter = (column: string, required = false) => ({
    name: column,
    in: 'query',
    required,
    description: `Filter on ${column} with its operator, such as eq.VALUE or in.(A,B)`,
    schema: { type: 'string' },
  });
  const properties = Object.fromEntries(
    [...columns].map(([column, type]) => [column, { type: 'string', ...(type !== 'text' && { format: type }) }]),
  );
  const requestBody = { content: { 'application/json': { schema: { type: 'object', properties } } } };
  const row = [filter('id', true), prefer];
  return {
    get: {
      operationId: `list_${name}`,
      summary: `List ${name}, oldest first`,
      parameters: [...columns.keys()].map((column) => filter(column)),
      responses,
    },
    post: { operationId: `create_${one}`, summary: `Create a ${one}`, parameters: [prefer], requestBody, responses },
    patch: { operationId: `update_${one}`, summary: `Update a ${one}`, parameters: row, requestBody, responses },
    delete: { operationId: `delete_${one}`, summary: `Delete a ${one}`, parameters: row, responses },
  };
}
