// Command vault is a Vault server for tests: Vault's own core and HTTP API, with KV, Kubernetes auth, AppRole and the
// audit log in a file, and none of the other plugins. On storage that is new it initialises and unseals itself, and
// prints one line of JSON with its root token and its unseal key. On storage with data it starts sealed, as Vault does.
package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	kubeauth "github.com/hashicorp/vault-plugin-auth-kubernetes"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/audit"
	"github.com/hashicorp/vault/builtin/credential/approle"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/hashicorp/vault/sdk/physical/file"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

// started is the line that the server prints when it has initialised itself.
type started struct {
	Address    string   `json:"address"`
	RootToken  string   `json:"rootToken"`
	UnsealKeys []string `json:"unsealKeys"`
}

// plugins says which plugins are built in, by their names. Without a registry, Vault panics at the first mount.
type plugins map[consts.PluginType]map[string]logical.Factory

func (p plugins) Contains(name string, kind consts.PluginType) bool {
	_, ok := p[kind][name]
	return ok
}

func (p plugins) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	factory, ok := p[kind][name]
	return func() (any, error) { return factory, nil }, ok
}

func (p plugins) Keys(kind consts.PluginType) (names []string) {
	for name := range p[kind] {
		names = append(names, name)
	}
	return names
}

func (p plugins) DeprecationStatus(string, consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, true
}

func (p plugins) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

func main() {
	listen := flag.String("listen", "127.0.0.1:8200", "the address and port to serve on")
	storage := flag.String("storage", "", "a folder that keeps the data; without it, the data is in memory")
	certificate := flag.String("tls-cert", "", "a file with the certificate, for TLS; it is read for each connection")
	key := flag.String("tls-key", "", "a file with the key of the certificate")
	initialize := flag.Bool("init", true, "initialise and unseal a server on new storage")
	flag.Parse()
	server := server{*listen, *storage, *certificate, *key, *initialize}
	if err := server.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type server struct {
	listen, storage, certificate, key string
	initialize                        bool
}

func (s server) run() error {
	listener, address, err := s.listener()
	if err != nil {
		return err
	}
	core, err := s.core(address)
	if err != nil {
		return err
	}
	// Nothing is served before the line is printed: who sees the server ready finds the line too.
	if err := s.prepare(core, address); err != nil {
		return err
	}
	return http.Serve(listener, vaulthttp.Handler.Handler(&vault.HandlerProperties{
		Core:           core,
		ListenerConfig: &configutil.Listener{MaxRequestDuration: time.Minute},
	}))
}

func (s server) listener() (net.Listener, string, error) {
	listener, err := net.Listen("tcp", s.listen)
	if err != nil || s.certificate == "" {
		return listener, "http://" + s.listen, err
	}
	// A certificate that is replaced counts from the next connection on.
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(s.certificate, s.key)
		return &pair, err
	}
	config := &tls.Config{GetCertificate: load, MinVersion: tls.VersionTLS12}
	return tls.NewListener(listener, config), "https://" + s.listen, nil
}

func (s server) core(address string) (*vault.Core, error) {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr})
	backend, err := s.backend(logger)
	if err != nil {
		return nil, err
	}
	secrets := map[string]logical.Factory{"kv": kv.Factory}
	credentials := map[string]logical.Factory{"kubernetes": kubeauth.Factory, "approle": approle.Factory}
	return vault.NewCore(&vault.CoreConfig{
		Physical:           backend,
		Logger:             logger,
		DisableMlock:       true,
		RedirectAddr:       address,
		BuiltinRegistry:    plugins{consts.PluginTypeSecrets: secrets, consts.PluginTypeCredential: credentials},
		LogicalBackends:    secrets,
		CredentialBackends: credentials,
		AuditBackends:      map[string]audit.Factory{"file": audit.NewFileBackend},
	})
}

func (s server) backend(logger hclog.Logger) (physical.Backend, error) {
	if s.storage == "" {
		return inmem.NewInmem(nil, logger)
	}
	folder, err := filepath.Abs(s.storage)
	if err != nil {
		return nil, err
	}
	return file.NewFileBackend(map[string]string{"path": folder}, logger)
}

// prepare initialises the storage where it is new, and prints what the server prints of it.
func (s server) prepare(core *vault.Core, address string) error {
	ctx := context.Background()
	if done, err := core.Initialized(ctx); err != nil || done || !s.initialize {
		return err
	}
	one := &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}
	made, err := core.Initialize(ctx, &vault.InitParams{BarrierConfig: one, RecoveryConfig: one})
	if err != nil {
		return err
	}
	line := started{Address: address, RootToken: made.RootToken}
	for _, key := range made.SecretShares {
		if _, err := core.Unseal(key); err != nil {
			return err
		}
		line.UnsealKeys = append(line.UnsealKeys, base64.StdEncoding.EncodeToString(key))
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}
