import { createBrowserRouter, type RouteObject } from 'react-router';
import { basePath } from './base-path.ts';
import { Frame } from './frame/frame.tsx';
import { RouteFailure } from './frame/route-failure.tsx';
import { HomePage } from './home/home-page.tsx';
import { returnPath } from './servers/login-check/channel.ts';
import { LoadingPage } from './ui/states/loading.tsx';

const serverTabs: RouteObject[] = [
  {
    index: true,
    lazy: async () => ({ Component: (await import('./servers/home/server-home.tsx')).ServerHome }),
  },
  {
    // One editor for both, so that what was typed in one tab is there in the other.
    lazy: async () => ({ Component: (await import('./servers/tabs/configuration-tab.tsx')).ConfigurationTab }),
    children: [{ path: 'tools' }, { path: 'settings' }],
  },
  { path: 'calls', lazy: async () => ({ Component: (await import('./servers/tabs/calls-tab.tsx')).CallsTab }) },
  { path: 'try', lazy: async () => ({ Component: (await import('./servers/try/try-tab.tsx')).TryTab }) },
  {
    path: 'connect',
    lazy: async () => ({ Component: (await import('./servers/connect/connect-tab.tsx')).ConnectTab }),
  },
  {
    path: 'playground',
    lazy: async () => ({ Component: (await import('./playground/playground-tab.tsx')).PlaygroundTab }),
  },
  { path: 'secrets', lazy: async () => ({ Component: (await import('./servers/tabs/secrets-tab.tsx')).SecretsTab }) },
  { path: 'logins', lazy: async () => ({ Component: (await import('./servers/tabs/logins-tab.tsx')).LoginsTab }) },
  {
    path: 'import',
    lazy: async () => ({ Component: (await import('./servers/import-again/import-tab.tsx')).ImportTab }),
  },
  {
    path: 'versions',
    lazy: async () => ({ Component: (await import('./servers/tabs/versions-tab.tsx')).VersionsTab }),
  },
  { path: 'options', lazy: async () => ({ Component: (await import('./servers/tabs/options-tab.tsx')).OptionsTab }) },
];

const pages: RouteObject[] = [
  { index: true, Component: HomePage },
  { path: 'servers', lazy: async () => ({ Component: (await import('./servers/list/servers-page.tsx')).ServersPage }) },
  {
    path: 'servers/new',
    lazy: async () => ({ Component: (await import('./servers/new/new-server-page.tsx')).NewServerPage }),
  },
  {
    path: 'servers/new/gallery',
    lazy: async () => ({ Component: (await import('./servers/gallery/gallery-page.tsx')).GalleryPage }),
  },
  {
    path: 'servers/new/import',
    lazy: async () => ({ Component: (await import('./servers/import/import-page.tsx')).ImportPage }),
  },
  {
    path: 'servers/:slug',
    lazy: async () => ({ Component: (await import('./servers/server-page.tsx')).ServerPage }),
    children: serverTabs,
  },
  { path: 'keys', lazy: async () => ({ Component: (await import('./keys/keys-page.tsx')).KeysPage }) },
  { path: 'calls', lazy: async () => ({ Component: (await import('./calls/calls-page.tsx')).CallsPage }) },
  { path: 'audit', lazy: async () => ({ Component: (await import('./audit/audit-page.tsx')).AuditPage }) },
  { path: 'usage', lazy: async () => ({ Component: (await import('./usage/usage-page.tsx')).UsagePage }) },
  {
    path: 'notifications',
    lazy: async () => ({ Component: (await import('./notifications/notifications-page.tsx')).NotificationsPage }),
  },
  { path: 'api-reference', lazy: async () => ({ Component: (await import('./frame/api-page.tsx')).ApiPage }) },
  { path: 'settings', lazy: async () => ({ Component: (await import('./settings/settings-page.tsx')).SettingsPage }) },
];

export function createRouter() {
  const routes: RouteObject[] = [
    {
      path: returnPath,
      HydrateFallback: LoadingPage,
      lazy: async () => ({ Component: (await import('./servers/login-check/return-page.tsx')).LoginReturnPage }),
    },
    {
      path: '/',
      Component: Frame,
      ErrorBoundary: RouteFailure,
      HydrateFallback: LoadingPage,
      children: [
        { ErrorBoundary: RouteFailure, children: pages },
        { path: '*', lazy: async () => ({ Component: (await import('./frame/not-found-page.tsx')).NotFoundPage }) },
      ],
    },
  ];
  return createBrowserRouter(routes, { basename: basePath || '/' });
}
