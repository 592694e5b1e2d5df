import { Anchor, Badge, Code, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { basePath } from '../base-path.ts';
import { Collapsible } from '../ui/collapsible.tsx';
import { SearchInput } from '../ui/debounced-input.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { Rows } from '../ui/rows.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { useUrlState } from '../ui/use-url-state.ts';

type Schema = { type?: string; enum?: unknown[]; description?: string; properties?: { [name: string]: Schema } };
type DescribedOperation = {
  operationId: string;
  summary: string;
  description?: string;
  'x-scope': string;
  parameters: { name: string; in: string; required: boolean; schema: Schema }[];
  requestBody?: { content: { 'application/json': { schema: Schema & { required?: string[] } } } };
};
type Document = { servers: { url: string }[]; paths: { [path: string]: { [method: string]: DescribedOperation } } };

const openApiUrl = `${basePath}/api/v1/openapi.json`;

export function ApiPage() {
  const { get, set } = useUrlState();
  const query = get('query') ?? '';
  const terms = query.toLowerCase().split(/\s+/);
  const document = useQuery({
    queryKey: ['openapi'],
    queryFn: async ({ signal }) => (await (await fetch(openApiUrl, { signal })).json()) as Document,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <>
      <PageHeader
        title="REST API"
        guide="docs/rest-api.md"
        text={
          <>
            Everything this dashboard does, with an API key as the bearer token. Generate clients from the{' '}
            <Anchor href={openApiUrl} inherit underline="always">
              OpenAPI document
            </Anchor>
            .
          </>
        }
      />
      <Loaded query={document}>
        {({ paths, servers }) => (
          <Stack gap={0}>
            <Group gap="sm" mb="md">
              <SearchInput aria-label="Search operations" value={query} onChange={(value) => set('query', value)} />
              <Code>{servers[0]?.url}</Code>
            </Group>
            {Object.entries(paths)
              .flatMap(([path, methods]) =>
                Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
              )
              .filter(({ path, operation: { operationId, summary } }) =>
                terms.every((term) => `${operationId} ${path} ${summary}`.toLowerCase().includes(term)),
              )
              .map((entry) => (
                <Operation key={entry.operation.operationId} {...entry} />
              ))}
          </Stack>
        )}
      </Loaded>
    </>
  );
}

type OperationProps = { path: string; method: string; operation: DescribedOperation };

function Operation({
  path,
  method,
  operation: { operationId, summary, description, parameters, ...more },
}: OperationProps) {
  const { properties = {}, required = [] } = more.requestBody?.content['application/json'].schema ?? {};
  const fields = [
    ...parameters.map(({ schema, ...parameter }) => ({ ...parameter, ...schema })),
    ...Object.entries(properties).map(([name, schema]) => ({
      ...schema,
      name,
      in: 'body',
      required: required.includes(name),
    })),
  ];
  return (
    <section className="th-operation" aria-label={operationId}>
      <Group gap="xs">
        <Badge miw="max-content">{method.toUpperCase()}</Badge>
        <Text className="th-mono">{path}</Text>
        <Badge miw="max-content">{more['x-scope']}</Badge>
      </Group>
      <Text mt={4}>{summary}.</Text>
      {description && <Text c="dimmed">{description}</Text>}
      {fields.length > 0 && (
        <Collapsible label={`${operationId} parameters (${fields.length})`}>
          <Rows
            label={`${operationId} parameters`}
            rows={fields}
            getKey={({ name }) => name}
            columns={[
              { label: 'Name', cell: ({ name, required: isRequired }) => <b>{isRequired ? `${name} *` : name}</b> },
              { label: 'In', cell: (field) => field.in },
              { label: 'Type', cell: (field) => field.enum?.join(', ') ?? field.type ?? 'any' },
              { label: 'Description', cell: (field) => field.description ?? '–' },
            ]}
          />
        </Collapsible>
      )}
    </section>
  );
}
