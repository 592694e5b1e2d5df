import { Anchor } from '@mantine/core';
import { Link, useNavigate, useSearchParams } from 'react-router';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { PageHeader } from '../../ui/page-header.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { type Config, unchecked } from '../config.ts';
import { Editor } from '../editor/editor.tsx';
import { StartChoices } from './start-choices.tsx';
import { type Start, startOf } from './starts.ts';

const starts: readonly string[] = ['example', 'json', 'form'] satisfies Start[];

export function NewServerPage() {
  const from = useSearchParams()[0].get('from') ?? '';
  const isChosen = starts.includes(from);
  const canEdit = useCanEdit();
  return (
    <>
      <PageHeader
        title="New server"
        guide="docs/tutorial.md"
        text={
          isChosen ? 'Nothing is stored before you create it.' : 'Choose how to begin; everything can be changed later.'
        }
        above={
          <Anchor component={Link} to={isChosen ? '/servers/new' : '/servers'} size="sm" c="dimmed">
            {isChosen ? 'Begin in another way' : 'Back to the servers'}
          </Anchor>
        }
      />
      {!canEdit ? (
        <ViewerNote>Only editors and owners make servers.</ViewerNote>
      ) : isChosen ? (
        <NewServer key={from} initial={startOf(from as Start)} startsInJson={from === 'json'} />
      ) : (
        <div className="th-card">
          <StartChoices />
        </div>
      )}
    </>
  );
}

/** The editor of a configuration that is not stored yet. */
export function NewServer({ initial, startsInJson = false }: { initial: Config; startsInJson?: boolean }) {
  const navigate = useNavigate();
  const create = useAction({
    run: (config: Config) => api('createMcpServer', unchecked(config)),
    done: ({ server }) => `Created ${server.name}`,
    refresh: [queryKeys.servers, queryKeys.activity],
    onDone: ({ server }) => navigate(`/servers/${server.slug}/connect`, { state: { isNew: true } }),
  });
  return <Editor initial={initial} isNew startsInJson={startsInJson} saving={create} />;
}
