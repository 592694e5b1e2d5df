import { SimpleGrid } from '@mantine/core';
import { isObject } from '../config.ts';
import { ChoiceField, TextField } from './config-fields.tsx';
import { useEditor } from './editor-context.ts';

const types = [
  { value: 'Bearer', label: 'Bearer – Authorization: Bearer TOKEN' },
  { value: 'ApiKey', label: 'API key – the token as it is, in a header' },
  { value: 'Basic', label: 'Basic – Authorization: Basic TOKEN' },
  { value: 'QueryParam', label: 'Query parameter' },
];

/** The settings by which a token reaches the API. */
export function AuthenticationFields({ isStored }: { isStored: boolean }) {
  const { config } = useEditor();
  const type = isObject(config.authentication) ? config.authentication.type : undefined;
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
      <ChoiceField path={['authentication', 'type']} label="The token is sent as" choices={types} isRequired />
      {type === 'QueryParam' ? (
        <TextField path={['authentication', 'query_key']} label="Query parameter" placeholder="api_key" isMono />
      ) : (
        <TextField path={['authentication', 'header']} label="Header" placeholder="Authorization" isMono />
      )}
      {isStored && (
        <TextField
          path={['authentication', 'token']}
          label="Credential"
          isRequired
          isMono
          text="{{NAME}} of a secret. Its value is set under Secrets once the server exists."
        />
      )}
    </SimpleGrid>
  );
}
