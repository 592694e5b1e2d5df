import { Stack, TextInput } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useLocation } from 'react-router';
import { api } from '../../api.ts';
import type { JsonObject } from '../../api-types.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { asInput, type Config } from '../config.ts';
import { useCurrentServer } from '../server-page.tsx';
import { ConflictAlert } from './conflict-alert.tsx';
import { Editor } from './editor.tsx';
import { goToField } from './model/go-to-field.ts';
import { useBase } from './model/use-base.ts';

/** Change passed from another page, for example a response_transform picked from a response. */
type IncomingChange = { tool: string; fields: JsonObject };

function applyIncomingChange(config: Config, incomingChange: IncomingChange | undefined): Config | undefined {
  if (!incomingChange || !Array.isArray(config.tools)) return undefined;
  const tools = config.tools.map((tool: JsonObject) =>
    tool.name === incomingChange.tool ? { ...tool, ...incomingChange.fields } : tool,
  );
  return { ...config, tools };
}

export function ServerEditor() {
  const detail = useCurrentServer();
  const canEdit = useCanEdit();
  const { slug } = detail.server;
  const { state, hash } = useLocation();
  const incomingChange = (state as { change?: IncomingChange } | null)?.change;
  // The hash of a link to a field is the field's path.
  useEffect(() => {
    if (hash !== '') goToField(decodeURIComponent(hash.slice(1)));
  }, [hash]);
  const base = useBase(detail, applyIncomingChange(detail.config, incomingChange));
  const [message, setMessage] = useState('');
  const save = useAction({
    run: (config: Config) =>
      api(
        'replaceMcpServer',
        { ...asInput(config), slug, message: message.trim() || undefined },
        { version: base.version },
      ),
    toast: ({ server }) => `Saved as version ${server.version}`,
    onSuccess: (_, savedConfig) => {
      setMessage('');
      return base.saved(savedConfig);
    },
    refresh: [queryKeys.servers],
  });
  return (
    <Stack gap="sm">
      <ViewerNote>Only editors and owners can change the configuration.</ViewerNote>
      <Editor
        store={base.store}
        saving={save}
        isNew={false}
        isReadOnly={!canEdit}
        callbackUrl={detail.callback_url}
        message={
          <TextInput
            aria-label="Version message"
            placeholder="Version message (optional)"
            value={message}
            onChange={(event) => setMessage(event.currentTarget.value)}
            maxLength={200}
            w={{ base: '100%', sm: 280 }}
          />
        }
        conflict={<ConflictAlert base={base} slug={slug} error={save.error} onResolved={save.reset} />}
      />
    </Stack>
  );
}
