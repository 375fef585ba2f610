package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	listTime  = 10 * time.Second
	listLimit = 4 << 20 // bytes
)

// List returns the names of the models that a server has, in its own order: what changed
// last comes first.
func List(ctx context.Context, baseURL string) ([]string, error) {
	names, err := list(ctx, baseURL)
	if err != nil {
		return nil, fmt.Errorf("list the models of ollama: %w", err)
	}
	return names, nil
}

func list(ctx context.Context, baseURL string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	u, err := url.Parse(base(baseURL))
	if err != nil || u.Host == "" {
		return nil, errors.New("the base URL is no http(s) URL")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("api/tags").String(), nil)
	if err != nil {
		return nil, err
	}
	// One question, and no connection that somebody would have to close.
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, listLimit))
	if err != nil {
		return nil, err
	}
	var tags struct {
		Models *[]struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := json.Unmarshal(data, &tags); err != nil || tags.Models == nil {
		return nil, errors.New("the answer is no list of models")
	}
	names := make([]string, 0, len(*tags.Models))
	for _, m := range *tags.Models {
		names = append(names, m.Name)
	}
	return names, nil
}
