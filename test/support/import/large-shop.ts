import type { Json } from '../toolhost/toolhost.ts';
import { openApi } from './import-plans.ts';

/** Returns a description with three hundred operations in thirty tags and an API key. */
export function createLargeShop(address: string): string {
  const paths: Json = {};
  for (let index = 0; index < 300; index++) {
    paths[`/things${index}/{id}`] = {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
      get: {
        operationId: `getThing${index}`,
        summary: `Get one of the things number ${index}`,
        tags: [`Tag ${Math.floor(index / 10)}`],
      },
    };
  }
  const securitySchemes = { key: { type: 'apiKey', in: 'header', name: 'X-Shop-Key' } };
  return JSON.stringify(
    openApi(paths, { servers: [{ url: address }], components: { securitySchemes }, security: [{ key: [] }] }),
  );
}
