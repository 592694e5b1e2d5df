import { Stack, TextInput } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useLocation } from 'react-router';
import type { JsonObject } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { type Config, unchecked } from '../config.ts';
import { ConflictNotice } from '../editor/conflict-notice.tsx';
import { Editor } from '../editor/editor.tsx';
import { goToField } from '../editor/model/go-to-field.ts';
import { useBase } from '../editor/model/use-base.ts';
import { useShownServer } from '../server-page.tsx';

/** Change passed from another page, for example a response_transform picked from a response. */
type Brought = { tool: string; fields: JsonObject };

function withBrought(config: Config, brought: Brought | undefined): Config | undefined {
  if (!brought || !Array.isArray(config.tools)) return undefined;
  const tools = config.tools.map((tool: JsonObject) =>
    tool.name === brought.tool ? { ...tool, ...brought.fields } : tool,
  );
  return { ...config, tools };
}

export function ConfigurationTab() {
  const detail = useShownServer();
  const canEdit = useCanEdit();
  const { slug } = detail.server;
  const { state, hash } = useLocation();
  const brought = (state as { change?: Brought } | null)?.change;
  // The hash of a link to a field is the field's path.
  useEffect(() => {
    if (hash !== '') goToField(decodeURIComponent(hash.slice(1)));
  }, [hash]);
  const base = useBase(detail, withBrought(detail.config, brought));
  const [message, setMessage] = useState('');
  const save = useAction({
    run: (config: Config) =>
      api(
        'replaceMcpServer',
        { ...unchecked(config), slug, message: message.trim() || undefined },
        { version: base.version },
      ),
    done: ({ server }) => `Saved as version ${server.version}`,
    onDone: (_, sent) => {
      setMessage('');
      return base.saved(sent);
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
            size="sm"
            aria-label="Version message"
            placeholder="Version message (optional)"
            value={message}
            onChange={(event) => setMessage(event.currentTarget.value)}
            maxLength={200}
            w={{ base: '100%', sm: 280 }}
            autoComplete="off"
          />
        }
        conflict={<ConflictNotice base={base} slug={slug} error={save.error} onSettled={save.reset} />}
      />
    </Stack>
  );
}
